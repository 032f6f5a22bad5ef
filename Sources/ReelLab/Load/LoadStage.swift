import ReelBase
import ReelCore
import ReelNet

/// A load run on its loop: the clients, the clock that makes events due, and the counts.
final class LoadStage {
    let plan: LoadPlan
    let gateways: LoadGateways
    let loop: EventLoop
    let frames = FrameCache()
    let fill: [UInt8]
    var statistics = LoadStatistics()

    /// The phase of a run.
    enum Phase: String { case connecting, publishing, settling, asking, over }

    private(set) var phase = Phase.connecting
    private(set) lazy var states = FoldedStates(gateways, on: loop)
    private lazy var claims = NodeClaims(gateways, asking: states, on: loop)
    private var clients: [LoadClient] = []
    private var publishers: [LoadClient] = []
    private var cold: [ObjectIdentifier: (client: LoadClient, startNs: Int64)] = [:]
    private var coldCount = 0
    private var finish: ((Result<LoadReport, LoadFailure>) -> Void)?
    private var progress: ((LoadProgress) -> Void)?
    private var ticker: LoopTimer?
    private var startedNs: Int64 = 0
    private var phaseNs: Int64 = 0
    private var publishedNs: Int64 = 0
    private var second = LoadStatistics.Second()
    private var secondNs: Int64 = 0
    private var stormNs: Int64 = 0
    private var connected: Set<ObjectIdentifier> = []
    private var unstarted: ArraySlice<LoadClient> = []
    private var connecting: Set<ObjectIdentifier> = []
    private var lastReason = "no answer"
    private var problems: [String] = []
    /// The gateways that have accepted a client, and the reasons of those that have not.
    private var open: Set<String> = []
    private var closed: [String: String] = [:]
    /// The gateways that refused the token.
    private var unauthorized: Set<String> = []
    /// The URLs without a gateway at the last attempt, and the time since which all URLs are like that.
    private var missing: Set<String> = []
    private var missingNs: Int64?
    /// A stream whose folded state no node had at the end; nil: there is none.
    private var stateless: StreamName?
    /// The nodes that were asked at the end for their folded states; nil: none were.
    private var asked: AskedNodes?
    /// The epochs in the order in which they were seen, and for each stream the highest acked seq with the index of its
    /// epoch.
    private var epochs: [Epoch] = []
    private var heads: [StreamName: (epoch: Int, seq: Seq)] = [:]

    /// The maximum number of connections that are made at the same time.
    private static let connectingMax = 256
    /// The maximum number of readers in their cold start at the same time.
    static let coldMax = 1_000
    /// The time after which a cold start has failed.
    private static let coldPatienceNs: Int64 = 30_000_000_000
    /// The time that a starting cluster has until there is a gateway.
    private static let missingPatienceNs: Int64 = 2_000_000_000

    init(_ plan: LoadPlan, _ gateways: LoadGateways, on loop: EventLoop) {
        self.plan = plan
        self.gateways = gateways
        self.loop = loop
        fill = LoadEvent.fill(plan.size - 170)
    }

    // MARK: The course of a run

    /// Starts the run. `finish` is called with the result. `progress` is called about once a second.
    func start(_ progress: ((LoadProgress) -> Void)?, _ finish: @escaping (Result<LoadReport, LoadFailure>) -> Void) {
        (self.progress, self.finish) = (progress, finish)
        startedNs = MonotonicClock.nowNs()
        (phaseNs, secondNs, stormNs) = (startedNs, startedNs, startedNs)
        for number in 0..<plan.readers { add(.reader, number) }
        for number in 0..<plan.publishers { publishers.append(add(.publisher, number)) }
        for number in 0..<plan.editors { publishers.append(add(.editor, number)) }
        unstarted = clients[...]
        startSome()
        ticker = loop.timer(after: .milliseconds(1), every: .milliseconds(1)) { [unowned self] in tick() }
    }

    @discardableResult
    private func add(_ role: LoadClient.Role, _ number: Int) -> LoadClient {
        let client = LoadClient(role, number, on: plan.streams[number % plan.streams.count], stage: self)
        clients.append(client)
        return client
    }

    private func startSome() {
        while connecting.count < Self.connectingMax, let client = unstarted.popFirst() {
            connecting.insert(ObjectIdentifier(client))
            client.connection.start()
        }
    }

    /// Stops new events. Running work is finished.
    func stop() {
        switch phase {
        case .connecting, .publishing: enter(.settling)
        case .settling, .asking, .over: break
        }
    }

    private func enter(_ phase: Phase) {
        self.phase = phase
        phaseNs = MonotonicClock.nowNs()
    }

    private func tick() {
        let now = MonotonicClock.nowNs()
        let inPhase = now - phaseNs
        if now - secondNs >= 1_000_000_000 { endSecond(now) }
        switch phase {
        case .connecting:
            if connected.count == clients.count {
                enter(.publishing)
            } else if open.isEmpty, unauthorized.isSuperset(of: plan.urls) {
                end(.failure(.shutOut(.unauthorized, plan.urls, lastReason)))
            } else if open.isEmpty, let missingNs, now - missingNs > Self.missingPatienceNs {
                end(.failure(.shutOut(.unreachable, plan.urls, lastReason)))
            } else if inPhase > Int64(plan.patienceSeconds * 1e9) {
                if epochs.isEmpty {
                    let code: LoadFailure.Code = unauthorized.isEmpty ? .unreachable : .unauthorized
                    return end(.failure(.shutOut(code, plan.urls, lastReason)))
                }
                enter(.publishing)
            }
        case .publishing:
            let until = plan.seconds.map { min(inPhase, Int64($0 * 1e9)) } ?? inPhase
            let wanted = publishers.isEmpty ? 0 : Int(Double(until) * plan.rate / 1e9)
            while statistics.due < wanted {
                // The time at which it was due, not the time of this tick. So a slow loop makes events late, not few.
                let dueNs = phaseNs + Int64(Double(statistics.due + 1) * 1e9 / plan.rate)
                publishers[statistics.due % publishers.count].publish(dueNs: dueNs)
                statistics.due += 1
            }
            for publisher in publishers { publisher.publishMore() }
            disturb(now, inPhase)
            publishedNs = until
            if until < inPhase { enter(.settling) }
        case .settling:
            for publisher in publishers { publisher.publishMore() }
            if isSettled || inPhase > Int64(plan.settleSeconds * 1e9) { askForStates() }
        case .asking, .over: break
        }
    }

    /// Applies the plan's storms and cold starts while events are published.
    private func disturb(_ now: Int64, _ inPhase: Int64) {
        if let period = plan.stormSeconds, now - stormNs > Int64(period * 1e9) {
            stormNs = now
            for client in clients { client.connection.cut() }
        }
        let due = Int(Double(inPhase) * Double(plan.coldStarts) / 1e9)
        while coldCount < due {
            // The time at which it was due, as for an event: a slow loop makes the cold start late.
            let dueNs = phaseNs + Int64(Double(coldCount + 1) * 1e9 / Double(plan.coldStarts))
            if cold.count < Self.coldMax { startCold(dueNs) } else { statistics.coldFailed += 1 }
            coldCount += 1
        }
        for (client, startNs) in cold.values where now - startNs > Self.coldPatienceNs {
            coldEnded(client, failed: true)
        }
    }

    private func startCold(_ dueNs: Int64) {
        let client = LoadClient(.cold, coldCount, on: plan.streams[coldCount % plan.streams.count], stage: self)
        cold[ObjectIdentifier(client)] = (client, dueNs)
        client.load { [weak self, weak client] isLoaded in
            guard let self, let client else { return }
            if isLoaded { client.connection.start() } else { coldEnded(client, failed: true) }
        }
    }

    /// Called when a cold reader has received everything up to its head.
    func isLive(_ client: LoadClient) {
        guard let (_, startNs) = cold[ObjectIdentifier(client)] else { return }
        statistics.coldStart.add(MonotonicClock.nowNs() - startNs)
        coldEnded(client, failed: false)
    }

    private func coldEnded(_ client: LoadClient, failed: Bool) {
        guard cold.removeValue(forKey: ObjectIdentifier(client)) != nil else { return }
        if failed { statistics.coldFailed += 1 }
        client.end()
    }

    /// Sends the sleepers offline, each at another time.
    private func sleep() {
        let second = statistics.seconds.count
        for (number, client) in publishers.prefix(plan.sleepers).enumerated() where (second + number) % 10 == 0 {
            client.rest(.seconds(4))
        }
    }

    /// Collects the folded states of the streams, and each node's report of them, as evidence if there are histories.
    private func askForStates() {
        guard let histories = plan.histories else { return end(.success(report())) }
        enter(.asking)
        states.keep(plan.streams, in: histories) { [self] missing in
            stateless = missing
            guard missing == nil, let epoch = epochs.last else { return end(.success(report())) }
            claims.write(plan.streams, in: epoch, to: histories) { [self] asked in
                self.asked = asked
                end(.success(report()))
            }
        }
    }

    /// True if everything is acked, and every reader has all acked events of its stream.
    private var isSettled: Bool {
        cold.isEmpty && publishers.allSatisfy { $0.queue.unacked == 0 || $0.isRefused } && clients.allSatisfy(hasAll)
    }

    private func hasAll(_ client: LoadClient) -> Bool {
        guard let view = client.view, let head = heads[client.stream] else { return true }
        guard let epoch = view.epoch.flatMap(epochs.firstIndex) else { return false }
        return epoch > head.epoch || epoch == head.epoch && view.reached >= head.seq
    }

    private func endSecond(_ now: Int64) {
        second.connected = connected.count
        statistics.seconds.append(second)
        addSecond()
        secondNs += 1_000_000_000
        if now - secondNs > 1_000_000_000 { secondNs = now }
        if phase == .publishing { sleep() }
        let update = LoadProgress(
            phase: phase.rawValue,
            plan: plan,
            statistics: statistics,
            connected: connected.count,
            closed: open.isEmpty ? [] : shut
        )
        progress?(update)
        do throws(ChildProcess.Failure) {
            try plan.histories?.flush()
        } catch {
            end(.failure(LoadFailure(.history, error.description)))
        }
    }

    /// Adds the latencies of the present second to the totals. Latencies are counted only by the second.
    private func addSecond() {
        statistics.ack.add(second.ack)
        statistics.delivery.add(second.delivery)
        second = LoadStatistics.Second()
    }

    private func end(_ result: Result<LoadReport, LoadFailure>) {
        guard let finish else { return }
        enter(.over)
        self.finish = nil
        ticker?.cancel()
        for client in clients + cold.values.map(\.client) { client.end() }
        var result = result
        // Clients that were never accepted have recorded nothing. If nothing else is in the folder, it is removed, so
        // that the next run can use it.
        if case .failure = result, epochs.isEmpty { plan.histories?.discard(.client) }
        do throws(ChildProcess.Failure) {
            try plan.histories?.flush()
        } catch {
            result = .failure(LoadFailure(.history, error.description))
        }
        finish(result)
    }

    private func report() -> LoadReport {
        addSecond()
        for publisher in publishers {
            let open = MonotonicClock.nowNs() - (publisher.queue.oldestDueNs ?? MonotonicClock.nowNs())
            statistics.pause.add(max(open, publisher.longestPauseNs))
        }
        let unacked = publishers.reduce(0) { $0 + $1.queue.unacked }
        let behind = clients.count { !hasAll($0) }
        if unacked > 0 { problems.append("\(unacked) events were never acked") }
        if statistics.coldFailed > 0 {
            problems.append("\(statistics.coldFailed) cold starts did not come to their end")
        }
        if behind > 0 { problems.append("\(behind) readers have not received all acked events") }
        return LoadReport(
            plan: plan,
            statistics: statistics,
            unacked: unacked,
            behind: behind,
            problems: problems,
            publishingSeconds: Double(publishedNs) / 1e9,
            stateless: stateless,
            asked: asked,
            closed: shut
        )
    }

    /// The gateways that have accepted no client, with the reason.
    private var shut: [String] {
        closed.filter { !open.contains($0.key) }.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
    }

    // MARK: Callbacks of clients

    func welcomed(_ client: LoadClient, _ welcome: ServerFrame.Welcome, by url: String) {
        open.insert(url)
        if !epochs.contains(welcome.epoch) { epochs.append(welcome.epoch) }
        if client.role != .cold { connected.insert(ObjectIdentifier(client)) }
        if connecting.remove(ObjectIdentifier(client)) != nil { startSome() }
    }

    func lost(_ client: LoadClient, _ url: String, _ loss: ConnectionLoss) {
        if !loss.wasWelcome {
            closed[url] = loss.reason
            if loss.isNoGateway { missing.insert(url) } else { missing.remove(url) }
            missingNs = missing.isSuperset(of: plan.urls) ? missingNs ?? MonotonicClock.nowNs() : nil
            if loss.code == ErrorCode.unauthorized.close { unauthorized.insert(url) }
        }
        connected.remove(ObjectIdentifier(client))
        if !loss.reason.isEmpty { lastReason = loss.reason }
        if loss.wasWelcome, phase != .over, client.role != .cold { statistics.reconnects += 1 }
    }

    func acked(_ client: LoadClient, latencyNs: Int64, pauseNs: Int64, _ epoch: Epoch, _ seq: Seq) {
        statistics.acked += 1
        second.acked += 1
        second.ack.add(latencyNs)
        statistics.longestPauseNs = max(statistics.longestPauseNs, pauseNs)
        guard let index = epochs.firstIndex(of: epoch) else { return }
        let head = heads[client.stream] ?? (index, .none)
        if (head.epoch, head.seq) < (index, seq) { heads[client.stream] = (index, seq) }
    }

    func delivered(_ frame: FrameCache.Frame) {
        statistics.delivered += frame.proof.events.count
        second.delivered += frame.proof.events.count
        let now = MonotonicClock.nowNs()
        for due in frame.dues { second.delivery.add(now - due) }
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
