import ReelClient
import ReelCore
import ReelNet

@testable import ReelGateway
@testable import ReelLog
@testable import ReelNode

/// One process of a gateway: the real loop, tails and sockets, on a simulated loop, log and network.
final class SimulatedGateway: @unchecked Sendable {
    let world: World
    let process: SimulatedProcess
    let log: SimulatedLog
    private let loop: GatewayLoop
    private let context: GatewayContext
    private var tails: [PartitionTail] = []
    var links: [SimulatedLink] = []

    /// Starts the gateway. Throws if the log does not answer; then the process has ended.
    init(_ world: World, _ name: String) throws {
        self.world = world
        let process = world.process(name)
        self.process = process
        log = world.log
        let handle = LogHandle(log, process)
        let settings = world.gatewaySettings(name)
        var bounds: [LogBounds] = []
        for partition in 0..<handle.partitions { bounds.append(try handle.bounds(partition)) }
        let starts = try WarmStart.find(in: handle, bounds: bounds, records: settings.warmRecords)
        context = GatewayContext(
            nodeID: name,
            log: handle,
            number: log.number,
            deployment: world.store.deployment,
            bounds: bounds,
            starts: starts,
            settings: settings,
            logger: Logger { line in world.trace(name, String(line.drop { $0 != " " }.dropFirst())) },
            metrics: Metrics(),
            state: nil
        )
        loop = GatewayLoop(on: process, index: 0, context: context, from: starts.map(\.from))
        _ = process.every(1_000) { [loop] in loop.tick() }
        tails = starts.enumerated().map { partition, start in
            PartitionTail(log: handle, partition: partition, from: start, hasRoom: { true }) { [weak self] tail, news in
                self?.process.after(0) { self?.received(news, of: tail) }
            }
        }
        for tail in tails { tail.start() }
        watch()
    }

    /// Checks from time to time for a newer log, and more often once the gateway has read the end of its own.
    private func watch() {
        process.after(context.health.logState == .ended ? 250 : process.pick(1_000...5_000)) { [self] in
            if log === world.log { return watch() }
            world.goOver(self)
        }
    }

    private func received(_ news: PartitionTail.News, of tail: PartitionTail) {
        switch news {
        case .batch(let batch):
            context.read(batch)
            loop.received(batch)
        case .skipped(let first):
            context.skipped(tail.partition, to: first)
            loop.skipped(tail.partition, to: first)
        case .ended(let error, let isFenced):
            if isFenced { world.broken("\(process.name) fenced itself: \(error)") }
            process.after(context.settings.tailPauseMs) { tail.start() }
        }
    }

    /// Returns a client for a connection. In some worlds, the devices have tokens that expire.
    func accept(_ user: String) -> SocketClient {
        guard world.hasTokens, let all = StreamPattern("*") else { return SocketClient(loop, access: Access(nil)) }
        let seconds = world.isWorking ? process.pick(2...60) : 3_600
        let grant = TokenGrant(
            subject: user,
            expiresAt: process.wallMs / 1_000 + seconds,
            read: [all],
            publish: [all]
        )
        return SocketClient(loop, access: Access(grant))
    }

    /// Compares a frame to a client with the log.
    func judge(_ text: [UInt8], _ link: SimulatedLink) {
        world.judge(text, of: log, from: process.name, to: link.device.name)
    }

    /// Asks all clients to connect to other gateways.
    func drain(withinMs: Int64) {
        for client in loop.clients.values { client.askToLeave(afterMs: process.pick(0...withinMs), nodes: []) }
        _ = process.every(20) { [loop] in for client in loop.clients.values { client.tick(nowMs: loop.nowMs) } }
    }

    /// Answers a GET of a range.
    func events(
        of stream: StreamName,
        after: Seq,
        epoch: Epoch?,
        limit: Int,
        then: @escaping (Int, [UInt8]) -> Void
    ) {
        let partition = stream.partition(of: context.partitions)
        let wanted = ReadRequest(stream: stream, epoch: epoch, after: after)
        loop.admit(wanted) { [loop, context] failure in
            if let failure { return then(failure.error.code.status, Problem(failure).body) }
            let head = loop.rings[partition].head
            var answer = EventRangeBody(from: after + 1, head: head)
            guard after < head else { return then(200, answer.bytes(stream, context.epoch, partition)) }
            let cursor = StreamCursor(stream, in: partition, after: after)
            let reader = OnePieceReader(cursor, to: head, events: limit) { result in
                switch result {
                case .success(let piece):
                    answer.append(piece)
                    then(200, answer.bytes(stream, context.epoch, partition))
                case .failure(let error):
                    let failure = loop.failure(error, stream)
                    then(failure.error.code.status, Problem(failure).body)
                }
            }
            loop.reads.read(reader)
        }
    }

    /// Ends the process and its connections.
    func kill(tellsDevices: Bool) {
        process.kill()
        for tail in tails { tail.stop() }
        for link in links {
            link.forgetGateway()
            link.cut(tellsDevice: tellsDevices, tellsGateway: false)
        }
        links = []
    }
}

/// A reader that takes one piece.
private final class OnePieceReader: EventReader {
    let cursor: StreamCursor
    let last: Seq
    let limits: (bytes: Int, events: Int)
    var readState = ReadState.idle
    let account: ReadAccount? = nil
    let access: Access? = nil
    let hasRoom = true
    private(set) var isOver = false
    private let then: (Result<EventRange, ReelError>) -> Void

    init(_ cursor: StreamCursor, to last: Seq, events: Int, then: @escaping (Result<EventRange, ReelError>) -> Void) {
        (self.cursor, self.last, self.then) = (cursor, last, then)
        limits = (8_000, events)
    }

    func received(_ piece: EventRange) { end(.success(piece)) }
    func caughtUp() {}
    func failed(_ error: ReelError) { end(.failure(error)) }

    private func end(_ result: Result<EventRange, ReelError>) {
        isOver = true
        then(result)
    }
}
