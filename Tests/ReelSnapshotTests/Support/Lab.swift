import ReelCore
import ReelLog
import ReelNode
import TestSupport
import Testing

@testable import ReelSnapshot

/// A log and a folder for snapshot nodes; the folder outlives each node.
struct Lab {
    let log: MemoryLog
    let folder: Folder
    var settings: SnapshotSettings

    init(partitions: Int = 2) throws {
        log = try MemoryLog(partitions: partitions)
        folder = try Folder()
        settings = SnapshotSettings(folder: folder.path)
        settings.batchEvents = 7
        // With a turn of 1,000 s no stream waits, however slow the machine is.
        settings.turn = .seconds(1_000)
        try EpochFolders.make(log.epoch, in: folder.path)
    }

    func node(metrics: Metrics = Metrics()) throws -> SnapshotNode {
        try SnapshotNode(log: log, settings: settings, logger: Logger(threshold: .error), metrics: metrics)
    }

    /// Appends the same event to each of the streams, which the log must not contain yet, and waits until the node has
    /// folded all of them.
    func fold(_ event: String, into streams: [String], on node: SnapshotNode) async throws {
        var counts = [Int](repeating: 0, count: log.partitions)
        for name in streams {
            let partition = try #require(StreamName(name)).partition(of: log.partitions)
            counts[partition] += 1
            try await log.append([event], key: name, to: partition)
        }
        for (partition, count) in counts.enumerated() { try await reach(node, partition, Seq(count - 1)) }
    }

    func path(_ partition: Int) -> String {
        EpochFolders.file(partition, in: EpochFolders.path(of: log.epoch, in: folder.path))
    }

    func identity(_ partition: Int) -> SnapshotFile.Identity {
        SnapshotFile.Identity(epoch: log.epoch, partition: partition, partitions: log.partitions)
    }

    func reader(_ partition: Int) -> StateReader {
        StateReader(place: PartitionFileSlot(path(partition)), identity: identity(partition), folder: folder.path)
    }

    /// Returns the projector of a partition's file without a thread, for tests that pass batches to it.
    func folder(_ partition: Int, _ file: SnapshotFile) throws -> PartitionProjector {
        let budget = CacheBudget(bytes: settings.cachedBytes, partitions: log.partitions)
        return try PartitionProjector(
            file: file,
            identity: identity(partition),
            settings: settings,
            budget: budget,
            log: log
        )
    }

    /// Waits until a node has folded a seq, and has compared its file with the log. A file that was folded before has
    /// the seq at once, but the node refuses requests until it has compared the two.
    func reach(_ node: SnapshotNode, _ partition: Int, _ seq: Seq) async throws {
        try await eventually("partition \(partition) folded to \(seq)") {
            node.positions[partition] >= seq && node.health.partitions[partition].isOpen
        }
    }
}
