import ReelCore

@testable import ReelLog

/// A snapshot node: folds what the log brings, and keeps what it has committed when it is killed.
final class SimulatedSnapshotNode {
    let world: World
    let name: String
    private(set) var process: SimulatedProcess
    private var folds: [PartitionFold]
    /// What lies on its disk.
    private var committed: [PartitionFold]

    init(_ world: World, _ name: String) {
        self.world = world
        self.name = name
        process = world.process(name)
        folds = world.log.partitions.indices.map {
            PartitionFold(partition: $0, of: world.log.partitions.count, epoch: world.log.epoch)
        }
        committed = folds
        follow()
    }

    func kill() { process.kill() }

    func restart() {
        process = world.process(name)
        folds = committed
        follow()
    }

    /// The first seq that it needs of a partition.
    func needs(_ partition: Int) -> Seq { committed[partition].next }

    private func follow() {
        process.after(process.pick(5...(process.chance(10) ? 3_000 : 300))) { [self] in
            for partition in folds.indices { read(partition) }
            if process.chance(50) { committed = folds }
            follow()
        }
    }

    private func read(_ partition: Int) {
        let from = folds[partition].next
        guard let batch = try? world.log.partitions[partition].batch(partition, from: from, to: .max - 1, bytes: 4_000)
        else { return }
        for entry in batch.entries {
            batch.withRecord(entry) { key, value in
                _ = folds[partition].read(key: key, value: value, seq: entry.seq)
            }
        }
    }

    /// A snapshot, or with `after` ≥ 0 a delta.
    func state(of stream: StreamName, after: Seq) -> (Int, [UInt8]) {
        let partition = stream.partition(of: folds.count)
        let position = folds[partition].next - 1
        var fold =
            folds[partition].streams[stream]
            ?? Fold(stream: stream, partition: partition, epoch: world.log.epoch)
        fold.advance(to: position)
        guard after <= position else { return (503, Array(#"{"code":"node_behind"}"#.utf8)) }
        var lines: [UInt8] = []
        do throws(ReelError) {
            var writer = try fold.snapshot(after: after)
            writer.writeAll(to: &lines)
        } catch {
            return (error.code.status, Array(#"{"code":"\#(error.code.rawValue)"}"#.utf8))
        }
        return (200, lines)
    }
}
