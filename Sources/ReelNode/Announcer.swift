public import ReelCore
public import ReelLog
public import ReelNet
import Synchronization

/// Tells the other nodes of this one through the log, again and again, and remembers what they tell.
public final class Announcer: Sendable {
    private let log: any EventLog
    private let logger: Logger
    private let describe: @Sendable () -> NodeAnnouncement
    private let ends: @Sendable () -> [Seq]?
    private let written: @Sendable (Result<Void, LogError>, EventLoop) -> Void
    /// The last seq of each partition, as the log said it last; only where `ends` does not say it.
    private let asked: Mutex<[Seq]>
    private let known = Mutex(PeerTable())
    /// A log that is away may hold a thread for long: one of them at a time.
    private let isAnnouncing = Atomic<Bool>(false)
    private let hasLeft = Atomic<Bool>(false)
    private let failures = Mutex(LineLimiter(lines: 1, windowMs: 60_000))
    /// The journal has a line of a failure, and none of its end.
    private let hasFailed = Atomic<Bool>(false)

    /// `describe` says what holds of this node at the moment; it is called on a thread that may block. `ends` says the
    /// last seq of each partition of the log where the node knows it; nil: the log is asked. `written` is called on the
    /// loop once an announcement was written, or failed.
    public init(
        log: any EventLog,
        logger: Logger,
        ends: @escaping @Sendable () -> [Seq]? = { nil },
        written: @escaping @Sendable (Result<Void, LogError>, EventLoop) -> Void = { _, _ in },
        describe: @escaping @Sendable () -> NodeAnnouncement
    ) {
        self.log = log
        self.logger = logger
        self.describe = describe
        self.ends = ends
        self.written = written
        asked = Mutex([Seq](repeating: .none, count: log.partitions))
    }

    /// What the nodes announced lately, this one among them. No position is beyond the end of the log: an announcement
    /// can be wrong.
    public var nodes: [NodeAnnouncement] { known.withLock { $0.nodes } }

    /// Those of them that go on announcing: who leaves is missing at once, who hangs or was killed soon.
    public var awake: [NodeAnnouncement] { known.withLock { $0.awake } }

    /// Announces now, and then on and on as long as the loop runs. On the loop.
    public func start(on loop: EventLoop, everyMs: Int64) {
        announce(on: loop)
        loop.timer(after: .milliseconds(everyMs), every: .milliseconds(everyMs)) { self.announce(on: loop) }
    }

    /// The node leaves: it says so at once, and with all that it may still announce. A loop that stops waits for it.
    /// On the loop.
    public func leave(on loop: EventLoop) {
        hasLeft.store(true, ordering: .relaxed)
        announce(on: loop)
    }

    private func announce(on loop: EventLoop) {
        guard !isAnnouncing.exchange(true, ordering: .relaxed) else { return }
        let hasLeft = hasLeft.load(ordering: .relaxed)
        loop.offload {
            defer { self.isAnnouncing.store(false, ordering: .relaxed) }
            var node = self.describe()
            node.hasLeft = hasLeft
            let result = Result { () throws(LogError) in try self.log.announce(node) }
            do throws(LogError) {
                try result.get()
                let nodes = try self.log.nodes()
                let ends = self.ends(for: nodes)
                self.known.withLock { $0.hear(nodes, epoch: self.log.epoch, ends: ends, now: .now) }
                if self.hasFailed.exchange(false, ordering: .relaxed) { self.logger.info("announcing resumed") }
            } catch {
                self.hasFailed.store(true, ordering: .relaxed)
                guard let unsaid = self.failures.withLock({ $0.admit(nowMs: WallClock.nowMs()) }) else {
                    return result
                }
                self.logger.warning(
                    "announcing failed",
                    ["code": error.code.rawValue, "detail": error.message, "lines_left_out": "\(unsaid)"]
                )
            }
            return result
        } then: { result in
            self.written(result, loop)
            // What was under way when the node left did not say so.
            if !hasLeft, self.hasLeft.load(ordering: .relaxed) { self.announce(on: loop) }
        }
    }

    /// The last seq of each partition. The log is asked for those partitions in which a node says that it is further
    /// than the log was before. Blocks.
    private func ends(for nodes: [NodeAnnouncement]) -> [Seq] {
        if let ends = ends() { return ends }
        var ends = asked.withLock { $0 }
        let positions = nodes.flatMap { $0.positions(in: log.epoch) + $0.folded(in: log.epoch) }
        let further = positions.filter { ends.indices.contains($0.partition) && $0.seq > ends[$0.partition] }
        for partition in Set(further.map(\.partition)) {
            // Where the log does not say it now, no node is believed to be further.
            guard let bounds = try? log.bounds(partition) else { break }
            ends[partition] = bounds.last
        }
        asked.withLock { [ends] in $0 = ends }
        return ends
    }

    /// The body of `GET /v1/cluster`: every node that announced itself lately, by id. A node's positions are those that
    /// it has announced. How far it is behind is told of positions that the log has. `id`: of the node that answers;
    /// nil: it is not said.
    func clusterBody(of log: CurrentLog, at id: String?) -> [UInt8] {
        let (announced, clamped) = known.withLock { ($0.announced, $0.nodes) }
        let (nodes, nowMs) = (announced.sorted { $0.id < $1.id }, WallClock.nowMs())
        let heads = AnnouncedHeads(
            clamped.flatMap { node in
                node.positions(in: log.epoch).map { (Int64($0.partition), $0.seq, node.heardMs) }
            }
        )
        var body = JSONObjectWriter()
        body.member("epoch", log.epoch.description)
        body.member("number", log.number)
        body.member("deployment", log.deployment.description)
        body.member("partitions", log.partitions)
        body.member("node", id)
        body.objects("nodes", nodes) { object, node in
            object.member("id", node.id)
            object.member("role", node.role)
            object.member("url", node.url)
            object.member("admin", node.adminURL)
            object.member("advertised", node.advertised)
            object.member("build", node.build)
            object.member("at", Self.said(node.atMs))
            object.member("age_ms", Self.said(nowMs - Self.said(node.heardMs)))
            if node.hasLeft { object.member("left", true) }
            if let isReady = node.isReady { object.member("ready", isReady) }
            object.member("epoch", node.epoch?.description)
            object.objects("roles", node.roles(in: log.epoch)) { object, role in
                object.member("role", role.role)
                object.objects("partitions", role.positions) { object, position in
                    let partition = Int64(position.partition)
                    let lag = heads.lag(partition: partition, seq: position.seq, heardMs: node.heardMs)
                    object.member("partition", position.partition)
                    object.member("seq", position.seq)
                    object.member("lag", Self.said(lag ?? 0))
                    object.member("code", node.stop(of: role.role, position.partition)?.rawValue)
                }
            }
        }
        return body.finish()
    }

    /// The nearest integer that JSON of the protocol carries, from 0 on.
    private static func said(_ number: Int64) -> Int64 { min(max(0, number), largestInteger) }
}
