import Synchronization

/// The memory of a node for the streams that its partitions keep, in bytes.
///
/// A partition may use what the others leave, and always its equal share. If partitions exceed the budget, each of them
/// that holds more than its share is asked to free memory. A partition that folds nothing then keeps its share at most.
final class CacheBudget: Sendable {
    private struct Member {
        var held = 0
        /// Asks the partition to free memory; nil: it is not folded now.
        var trim: (@Sendable () -> Void)?
    }

    private struct Partitions {
        var members: [Member]
        /// The memory that all of them hold.
        var held = 0

        mutating func hold(_ bytes: Int, in partition: Int) {
            held += bytes - members[partition].held
            members[partition].held = bytes
        }
    }

    /// The memory that each partition may always use.
    let share: Int
    private let bytes: Int
    private let partitions: Mutex<Partitions>

    init(bytes: Int, partitions: Int) {
        self.bytes = bytes
        share = bytes / max(1, partitions)
        self.partitions = Mutex(Partitions(members: Array(repeating: Member(), count: partitions)))
    }

    /// Returns the memory that a partition holds, as of its last transaction.
    func held(by partition: Int) -> Int { partitions.withLock { $0.members[partition].held } }

    /// Begins to fold a partition. `trim` is called from any thread.
    func join(_ partition: Int, trim: @escaping @Sendable () -> Void) {
        partitions.withLock { $0.members[partition].trim = trim }
    }

    /// Ends to fold a partition, which then holds nothing.
    func leave(_ partition: Int) {
        partitions.withLock {
            $0.hold(0, in: partition)
            $0.members[partition].trim = nil
        }
    }

    /// Notes the memory that a partition holds after it has freed some. No other partition is asked, because two that
    /// cannot free more would ask each other without end.
    func freed(to held: Int, in partition: Int) {
        partitions.withLock { $0.hold(held, in: partition) }
    }

    /// Notes the memory that a partition holds after a transaction. Returns the limit of that memory: what the others
    /// leave of the budget, or the share.
    func hold(_ held: Int, in partition: Int) -> Int {
        let (others, crowd) = partitions.withLock { partitions in
            partitions.hold(held, in: partition)
            let others = partitions.held - held
            guard partitions.held > bytes else { return (others, [Member]()) }
            let crowd = partitions.members.indices.filter { $0 != partition && partitions.members[$0].held > share }
            return (others, crowd.map { partitions.members[$0] })
        }
        // The lock is a leaf: a partition is asked without it.
        for member in crowd { member.trim?() }
        return max(share, bytes - others)
    }
}
