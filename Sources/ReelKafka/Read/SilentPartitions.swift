/// Partitions that have not answered for a long time, for example because they have no leader. Only one caller at a
/// time asks such a partition, and the others fail at once. The threads that can wait are few, and other partitions
/// need them. Pure.
package struct SilentPartitions: Sendable {
    private struct Partition {
        /// When it has last answered, or was first asked.
        var sinceMs: Int64
        var asking = 0
        /// When it was asked last.
        var askedMs: Int64
        /// The timeout of the next question to a silent partition, in milliseconds.
        var waitMs = SilentPartitions.shortWaitMs
    }

    private var partitions: [Int: Partition] = [:]

    /// Timeouts of a question, in milliseconds. `shortWaitMs` is for the first question to a silent partition. It
    /// doubles with each further question, up to `waitMs`, because the partition may only be slow.
    package static let waitMs: Int64 = 8_000
    package static let shortWaitMs: Int64 = 1_000
    /// The time without questions after which a partition's state is forgotten, in milliseconds.
    package static let memoryMs: Int64 = 10_000
    /// The time without an answer after which a partition is silent, in milliseconds.
    package static let silenceMs: Int64 = 2_000

    package init() {}

    /// Called before a question. Returns its timeout in milliseconds; nil: the caller must not ask, and does not call
    /// `end`.
    package mutating func begin(_ number: Int, nowMs: Int64) -> Int64? {
        var partition = partitions[number] ?? Partition(sinceMs: nowMs, askedMs: nowMs)
        if partition.asking == 0, nowMs - partition.askedMs > Self.memoryMs {
            partition = Partition(sinceMs: nowMs, askedMs: nowMs)
        }
        let isSilent = nowMs - partition.sinceMs > Self.silenceMs
        if isSilent, partition.asking > 0 { return nil }
        partition.asking += 1
        partition.askedMs = nowMs
        defer { partitions[number] = partition }
        guard isSilent else { return Self.waitMs }
        defer { partition.waitMs = min(2 * partition.waitMs, Self.waitMs) }
        return partition.waitMs
    }

    /// Called when a question has ended.
    ///
    /// - Parameters:
    ///   - number: The number of the partition.
    ///   - answered: True if the partition has answered.
    ///   - nowMs: The present time in milliseconds.
    package mutating func end(_ number: Int, answered: Bool, nowMs: Int64) {
        guard var partition = partitions[number] else { return }
        partition.asking -= 1
        if answered { partition.sinceMs = nowMs }
        partitions[number] = answered && partition.asking == 0 ? nil : partition
    }
}
