public import ReelCore
public import ReelLog
public import ReelNet
import Synchronization

/// Tells the other nodes of this one through the log, again and again, and remembers what they tell.
public final class Announcer: Sendable {
    private let log: any EventLog
    private let journal: Journal
    private let describe: @Sendable () -> NodeAnnouncement
    private let known = Mutex<[NodeAnnouncement]>([])
    /// A log that is away may hold a thread for long: one of them at a time.
    private let isAnnouncing = Atomic<Bool>(false)
    private let failures = Mutex(LineLimiter(lines: 1, windowMs: 60_000))

    /// `describe` says what holds of this node at the moment; it is called on a thread that may block.
    public init(log: any EventLog, journal: Journal, describe: @escaping @Sendable () -> NodeAnnouncement) {
        self.log = log
        self.journal = journal
        self.describe = describe
    }

    /// What the nodes announced lately, this one among them.
    public var nodes: [NodeAnnouncement] { known.withLock { $0 } }

    /// Announces now, and then on and on as long as the loop runs. On the loop.
    public func start(on loop: EventLoop, everyMs: Int64) {
        announce(on: loop)
        loop.timer(after: .milliseconds(everyMs), every: .milliseconds(everyMs)) { self.announce(on: loop) }
    }

    private func announce(on loop: EventLoop) {
        guard !isAnnouncing.exchange(true, ordering: .relaxed) else { return }
        loop.offload {
            defer { self.isAnnouncing.store(false, ordering: .relaxed) }
            do throws(LogError) {
                try self.log.announce(self.describe())
                let nodes = try self.log.nodes()
                self.known.withLock { $0 = nodes }
            } catch {
                guard let unsaid = self.failures.withLock({ $0.admit(nowMs: WallClock.nowMs()) }) else { return }
                self.journal.warning(
                    "announcing failed",
                    ["code": error.code.rawValue, "detail": error.message, "lines_left_out": "\(unsaid)"]
                )
            }
        } then: { _ in
        }
    }

    /// The body of `GET /v1/cluster`: every node that announced itself lately, by id.
    public func clusterBody(epoch: Epoch, partitions: Int) -> [UInt8] {
        let nodes = nodes.sorted { $0.id < $1.id }
        var heads = [Seq](repeating: .none, count: partitions)
        for position in nodes.flatMap(\.positions) where heads.indices.contains(position.partition) {
            heads[position.partition] = max(heads[position.partition], position.seq)
        }
        var body: [UInt8] = []
        body.append(#"{"epoch":""#)
        body.append(contentsOf: epoch.description.utf8)
        body.append(#"","partitions":"#)
        body.append(integer: partitions)
        body.append(#","nodes":["#)
        for (index, node) in nodes.enumerated() {
            if index > 0 { body.append(UInt8(ascii: ",")) }
            Self.append(node, heads, to: &body)
        }
        body.append("]}")
        return body
    }

    private static func append(_ node: NodeAnnouncement, _ heads: [Seq], to body: inout [UInt8]) {
        body.append(#"{"id":"#)
        body.append(quoted: node.id)
        body.append(#","role":"#)
        body.append(quoted: node.role)
        body.append(#","url":"#)
        body.append(quoted: node.url)
        if let advertised = node.advertised {
            body.append(#","advertised":"#)
            body.append(quoted: advertised)
        }
        body.append(#","build":"#)
        body.append(quoted: node.build)
        body.append(#","at":"#)
        body.append(integer: node.atMs)
        body.append(#","partitions":["#)
        for (index, position) in node.positions.enumerated() {
            if index > 0 { body.append(UInt8(ascii: ",")) }
            let head = heads.indices.contains(position.partition) ? heads[position.partition] : position.seq
            body.append(#"{"partition":"#)
            body.append(integer: position.partition)
            body.append(#","seq":"#)
            body.append(integer: position.seq)
            body.append(#","lag":"#)
            body.append(integer: max(0, head - position.seq))
            body.append(UInt8(ascii: "}"))
        }
        body.append("]}")
    }
}
