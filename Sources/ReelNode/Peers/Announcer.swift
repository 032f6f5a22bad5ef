internal import ReelBase
public import ReelCore
public import ReelLog
public import ReelNet
import Synchronization

/// Announces this node to its peers through the log at intervals, and keeps the announcements of all nodes.
public final class Announcer: Sendable {
    private let log: any EventLog
    private let logger: Logger
    private let describe: @Sendable () -> NodeAnnouncement
    private let ends: @Sendable () -> [Seq]?
    private let written: @Sendable (Result<Void, LogError>, EventLoop) -> Void
    /// The last seq of each partition by the latest query of the log; used only if `ends` returns nil.
    private let queriedEnds: Mutex<[Seq]>
    private let known = Mutex(PeerTable())
    /// True while an announcement is running. An unavailable log may block a thread for long, so only one may run.
    private let isAnnouncing = Atomic<Bool>(false)
    private let hasLeft = Atomic<Bool>(false)
    private let failures = Mutex(LineLimiter(lines: 1, windowMs: 60_000))
    /// True if a failure was logged, and not its end.
    private let hasFailed = Atomic<Bool>(false)

    /// Makes an announcer.
    ///
    /// - Parameters:
    ///   - log: The log through which nodes announce themselves.
    ///   - logger: The logger of the node.
    ///   - ends: Returns the last seq of each partition of the log if the node knows it; nil: the log is queried.
    ///   - written: Called on the loop after an announcement was written, or failed.
    ///   - describe: Returns the current announcement of this node. Called on a thread that may block.
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
        queriedEnds = Mutex([Seq](repeating: .none, count: log.partitions))
    }

    /// The recent announcements of all nodes, including this one. No position is beyond the end of the log, since an
    /// announcement can be wrong.
    public var nodes: [NodeAnnouncement] { known.withLock { $0.nodes } }

    /// The announcements of the nodes that are alive. A node that leaves is missing at once; a node that hangs or was
    /// killed is missing after `PeerTable.patience`.
    public var alive: [NodeAnnouncement] { known.withLock { $0.alive } }

    /// Announces now, and then every `everyMs` milliseconds as long as the loop runs. On the loop.
    public func start(on loop: EventLoop, everyMs: Int64) {
        announce(on: loop)
        loop.timer(after: .milliseconds(everyMs), every: .milliseconds(everyMs)) { self.announce(on: loop) }
    }

    /// Announces that the node leaves, now and in all later announcements. A loop that stops waits for the
    /// announcement. On the loop.
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
                guard let leftOut = self.failures.withLock({ $0.admit(nowMs: WallClock.nowMs()) }) else {
                    return result
                }
                self.logger.warning(
                    "announcing failed",
                    ["code": error.code.rawValue, "detail": error.message, "lines_left_out": "\(leftOut)"]
                )
            }
            return result
        } then: { result in
            self.written(result, loop)
            // An announcement that was running when the node left did not contain that.
            if !hasLeft, self.hasLeft.load(ordering: .relaxed) { self.announce(on: loop) }
        }
    }

    /// Returns the last seq of each partition. Queries the log only for partitions in which a node announces a higher
    /// seq than the log had before. Blocks.
    private func ends(for nodes: [NodeAnnouncement]) -> [Seq] {
        if let ends = ends() { return ends }
        var ends = queriedEnds.withLock { $0 }
        let positions = nodes.flatMap { $0.positions(in: log.epoch) + $0.folded(in: log.epoch) }
        let further = positions.filter { ends.indices.contains($0.partition) && $0.seq > ends[$0.partition] }
        for partition in Set(further.map(\.partition)) {
            // If the log does not answer now, no node is believed to be further.
            guard let bounds = try? log.bounds(partition) else { break }
            ends[partition] = bounds.last
        }
        queriedEnds.withLock { [ends] in $0 = ends }
        return ends
    }

    /// Returns the body of `GET /v1/cluster`: the recent announcements of all nodes, by id. It has the positions as
    /// announced. The lag of a node is computed only from positions that the log has. `id` is the id of the answering
    /// node; nil: it is omitted.
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
            object.member("at", Self.clamped(node.atMs))
            object.member("age_ms", Self.clamped(nowMs - Self.clamped(node.heardMs)))
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
                    object.member("lag", Self.clamped(lag ?? 0))
                    object.member("code", node.stop(of: role.role, position.partition)?.rawValue)
                }
            }
        }
        return body.finish()
    }

    /// Returns the nearest integer from 0 on that the JSON of the protocol can carry.
    private static func clamped(_ number: Int64) -> Int64 { min(max(0, number), largestInteger) }
}
