import ReelCore
import ReelNet

/// A load run on its loop: the clients, the clock that makes events due, and what is counted.
final class LoadStage {
    let plan: LoadPlan
    let loop: EventLoop
    let frames = FrameCache()
    let fill: [UInt8]
    var statistics = LoadStatistics()

    private enum Phase { case connecting, publishing, settling, over }

    private var phase = Phase.connecting
    private var clients: [LoadClient] = []
    private var publishers: [LoadClient] = []
    private var finish: ((Result<LoadReport, LoadFailure>) -> Void)?
    private var ticker: LoopTimer?
    private var startedNs: Int64 = 0
    private var phaseNs: Int64 = 0
    private var second = LoadStatistics.Second()
    private var secondNs: Int64 = 0
    private var connected: Set<ObjectIdentifier> = []
    private var unstarted: ArraySlice<LoadClient> = []
    private var connecting: Set<ObjectIdentifier> = []
    private var lastReason = "no answer"
    private var problems: [String] = []
    /// The epochs in the order in which they were met, and for each stream the highest seq that was acked in which.
    private var epochs: [Epoch] = []
    private var heads: [StreamName: (epoch: Int, seq: Seq)] = [:]

    /// How many connections are made at a time.
    private static let connectingMax = 256
    /// Without a single welcome after so long there is nobody to load.
    private static let patienceNs: Int64 = 8_000_000_000

    init(_ plan: LoadPlan, on loop: EventLoop) {
        self.plan = plan
        self.loop = loop
        fill = LoadEvent.fill(plan.size - 170)
    }

    // MARK: The course of a run

    /// Runs; the result comes when all is over.
    func start(_ finish: @escaping (Result<LoadReport, LoadFailure>) -> Void) {
        self.finish = finish
        startedNs = Clock.nowNs()
        (phaseNs, secondNs) = (startedNs, startedNs)
        for number in 0..<plan.readers {
            add("reader-\(number)", number, publishes: false)
        }
        for number in 0..<plan.publishers {
            publishers.append(add("publisher-\(number)", number, publishes: true))
        }
        unstarted = clients[...]
        startSome()
        ticker = loop.timer(after: .milliseconds(1), every: .milliseconds(1)) { [unowned self] in tick() }
    }

    @discardableResult
    private func add(_ name: String, _ number: Int, publishes: Bool) -> LoadClient {
        let stream = plan.streams[number % plan.streams.count]
        let client = LoadClient(
            name,
            on: stream,
            publishes: publishes,
            reads: !publishes,
            number: clients.count,
            stage: self
        )
        clients.append(client)
        return client
    }

    private func startSome() {
        while connecting.count < Self.connectingMax, let client = unstarted.popFirst() {
            connecting.insert(ObjectIdentifier(client))
            client.connection.start()
        }
    }

    /// No more events; what is under way comes to its end.
    func stop() {
        switch phase {
        case .connecting, .publishing: enter(.settling)
        case .settling, .over: break
        }
    }

    private func enter(_ phase: Phase) {
        self.phase = phase
        phaseNs = Clock.nowNs()
    }

    private func tick() {
        let now = Clock.nowNs()
        let inPhase = now - phaseNs
        if now - secondNs >= 1_000_000_000 { endSecond(now) }
        switch phase {
        case .connecting:
            if connected.count == clients.count {
                enter(.publishing)
            } else if inPhase > Self.patienceNs {
                if epochs.isEmpty { return end(.failure(.unreachable(plan.urls, lastReason))) }
                enter(.publishing)
            }
        case .publishing:
            let until = plan.seconds.map { min(inPhase, Int64($0 * 1e9)) } ?? inPhase
            let wanted = publishers.isEmpty ? 0 : Int(Double(until) * plan.rate / 1e9)
            while statistics.due < wanted {
                // When it was due, not when this tick came to it: a loop that is late makes events late, not few.
                let dueNs = phaseNs + Int64(Double(statistics.due + 1) * 1e9 / plan.rate)
                publishers[statistics.due % publishers.count].publish(dueNs: dueNs)
                statistics.due += 1
            }
            for publisher in publishers { publisher.publishMore() }
            if until < inPhase { enter(.settling) }
        case .settling:
            if isSettled {
                end(.success(report(isSettled: true)))
            } else if inPhase > Int64(plan.settleSeconds * 1e9) {
                end(.success(report(isSettled: false)))
            }
        case .over: break
        }
    }

    /// Everything is acked, and every reader has all that was acked on its stream.
    private var isSettled: Bool {
        publishers.allSatisfy { $0.queue.unacked == 0 || $0.isRefused } && clients.allSatisfy(hasAll)
    }

    private func hasAll(_ client: LoadClient) -> Bool {
        guard let view = client.view, let head = heads[client.stream] else { return true }
        guard let epoch = view.epoch.flatMap(epochs.firstIndex) else { return false }
        return epoch > head.epoch || epoch == head.epoch && view.reached >= head.seq
    }

    private func endSecond(_ now: Int64) {
        second.connected = connected.count
        statistics.seconds.append(second)
        second = LoadStatistics.Second()
        secondNs += 1_000_000_000
        if now - secondNs > 1_000_000_000 { secondNs = now }
        do throws(ChildProcess.Failure) {
            try plan.histories?.flush()
        } catch {
            end(.failure(LoadFailure(.history, error.description)))
        }
    }

    private func end(_ result: Result<LoadReport, LoadFailure>) {
        guard let finish else { return }
        enter(.over)
        self.finish = nil
        ticker?.cancel()
        for client in clients { client.end() }
        var result = result
        do throws(ChildProcess.Failure) {
            try plan.histories?.flush()
        } catch {
            result = .failure(LoadFailure(.history, error.description))
        }
        finish(result)
    }

    private func report(isSettled: Bool) -> LoadReport {
        for publisher in publishers {
            let pause = Clock.nowNs() - (publisher.queue.oldestDueNs ?? Clock.nowNs())
            if pause > statistics.longestPauseNs { paused(pause) }
        }
        let unacked = publishers.reduce(0) { $0 + $1.queue.unacked }
        let behind = clients.count { !hasAll($0) }
        if unacked > 0 { problems.append("\(unacked) events were never acked") }
        if behind > 0 { problems.append("\(behind) readers have not received all that was acked") }
        return LoadReport(
            plan: plan,
            statistics: statistics,
            unacked: unacked,
            behind: behind,
            problems: problems,
            publishedNs: Clock.nowNs() - startedNs
        )
    }

    // MARK: What clients tell

    func welcomed(_ client: LoadClient, _ welcome: ServerFrame.Welcome) {
        if !epochs.contains(welcome.epoch) { epochs.append(welcome.epoch) }
        connected.insert(ObjectIdentifier(client))
        if connecting.remove(ObjectIdentifier(client)) != nil { startSome() }
    }

    func lost(_ client: LoadClient, reason: String, wasWelcome: Bool) {
        connected.remove(ObjectIdentifier(client))
        if !reason.isEmpty { lastReason = reason }
        if wasWelcome, phase != .over { statistics.reconnects += 1 }
    }

    func acked(_ client: LoadClient, latencyNs: Int64, pauseNs: Int64, _ epoch: Epoch, _ seq: Seq) {
        statistics.acked += 1
        statistics.ack.add(latencyNs)
        second.acked += 1
        second.ack.add(latencyNs)
        if pauseNs > statistics.longestPauseNs { paused(pauseNs) }
        guard let index = epochs.firstIndex(of: epoch) else { return }
        let head = heads[client.stream] ?? (index, .none)
        if (head.epoch, head.seq) < (index, seq) { heads[client.stream] = (index, seq) }
    }

    private func paused(_ pauseNs: Int64) {
        statistics.longestPauseNs = pauseNs
        statistics.longestPauseAtMs = Clock.nowMs()
    }

    func delivered(_ frame: FrameCache.Frame) {
        statistics.delivered += frame.proof.events.count
        second.delivered += frame.proof.events.count
        let now = Clock.nowNs()
        for due in frame.dues {
            statistics.delivery.add(now - due)
            second.delivery.add(now - due)
        }
    }

    func nacked(_ client: LoadClient, _ error: ReelError) {
        statistics.nacked += 1
        statistics.codes[error.code.rawValue, default: 0] += 1
    }

    func failed(_ client: LoadClient, _ error: ReelError) {
        statistics.codes[error.code.rawValue, default: 0] += 1
        lastReason = error.message
    }

    func refused(_ client: LoadClient, _ error: ReelError) {
        if problems.count < 10 {
            problems.append("\(client.name) was refused: \(error.message) (\(error.code.rawValue))")
        }
    }
}
