import ReelCore
import ReelNode

/// A reader of events before the head: a subscription, a fetch, an event stream, or a request for a range. It owns a
/// cursor; the `ReadScheduler` of its loop moves it. On its loop only.
protocol EventReader: AnyObject {
    /// The position of the reader.
    var cursor: StreamCursor { get }
    /// The reader's place in the scheduler, which alone changes it.
    var readState: ReadState { get set }
    /// The limit of operations that the reader shares with others; nil: it shares none, and has one operation at a time
    /// anyway.
    var account: ReadAccount? { get }
    /// The rights of the client, for questions to other nodes.
    var access: Access? { get }
    /// True if the reader wants nothing any more.
    var isOver: Bool { get }
    /// The last seq that it wants at present.
    var last: Seq { get }
    /// The maximum size in bytes of a piece, and the maximum number of its events.
    var limits: (bytes: Int, events: Int) { get }
    /// True if the client can take a piece now.
    var hasRoom: Bool { get }
    /// True if the reader waits while the nodes that know outcomes are overloaded. Otherwise it fails.
    var waitsOutOverload: Bool { get }

    /// Called when there is no room. The reader calls `ReadScheduler.roomFreed` once there is.
    func waitForRoom()
    /// Called with the next piece, in the order of seqs.
    func received(_ piece: EventRange)
    /// Called when the cursor is at the last seq. The reader calls `ReadScheduler.read` when it wants more.
    func caughtUp()
    /// Called when the next piece cannot be had.
    func failed(_ error: ReelError)
}

extension EventReader {
    var waitsOutOverload: Bool { true }
    func waitForRoom() {}
}

/// The place of a reader in the scheduler.
enum ReadState: UInt8 {
    /// It waits for nothing.
    case idle
    /// It waits for its turn.
    case queued
    /// It waits until its client has read.
    case waitsForRoom
    /// It waits until another operation under the same limit ends.
    case waitsForOperation
    /// It waits for the log, a node, or outcomes.
    case reading
}
