/// Partitions that have not answered for long, as where nobody leads them. While one asks such a partition, nobody else
/// waits for it: the threads that wait are few, and other partitions need them. Without effects.
package struct SilentPartitions: Sendable {
    private struct Partition {
        /// Since when it has not answered.
        var sinceMs: Int64
        var asking = 0
        /// When it was asked last.
        var askedMs: Int64
        /// How long the next question waits, where it has not answered for long.
        var waitMs = SilentPartitions.shortWaitMs
    }

    private var partitions: [Int: Partition] = [:]

    /// So long a question waits for its answer; and the first one where none has come for long. Each of those that
    /// follow waits twice as long: it may only be slow.
    package static let waitMs: Int64 = 8_000
    package static let shortWaitMs: Int64 = 1_000
    /// What was said of a partition that nobody asks for so long is not remembered.
    package static let memoryMs: Int64 = 10_000
    /// What is long.
    package static let silenceMs: Int64 = 2_000

    package init() {}

    /// Somebody asks. How long to wait; nil: not at all, and nothing was begun.
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

    /// What was begun has ended, with an answer or without.
    package mutating func end(_ number: Int, answered: Bool, nowMs: Int64) {
        guard var partition = partitions[number] else { return }
        partition.asking -= 1
        if answered { partition.sinceMs = nowMs }
        partitions[number] = answered && partition.asking == 0 ? nil : partition
    }
}
