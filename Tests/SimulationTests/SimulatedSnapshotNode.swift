import ReelCore

@testable import ReelLog

/// A snapshot node: it folds the records of the log, and keeps its committed state when it is killed.
final class SimulatedSnapshotNode {
    let world: World
    let name: String
    private(set) var process: SimulatedProcess
    /// The log that the node folds.
    private(set) var log: SimulatedLog
    private var folds: [PartitionFold]
    /// The state on its disk.
    private(set) var committed: [PartitionFold]

    init(_ world: World, _ name: String) {
        self.world = world
        self.name = name
        process = world.process(name)
        log = world.log
        folds = Self.folds(of: log)
        committed = folds
        follow()
    }

    private static func folds(of log: SimulatedLog) -> [PartitionFold] {
        log.partitions.indices.map { PartitionFold(partition: $0, of: log.partitions.count, epoch: log.epoch) }
    }

    func kill() { process.kill() }

    func restart() {
        process = world.process(name)
        folds = committed
        follow()
    }

    /// Returns the first seq that the node needs of a partition of the current log.
    func needs(_ partition: Int) -> Seq {
        log === world.log && !committed[partition].isInsideSeeds(of: log) ? committed[partition].next : 0
    }

    private func follow() {
        process.after(process.pick(5...(process.chance(10) ? 3_000 : 300))) { [self] in
            if log !== world.log, process.chance(50) {
                log = world.log
                folds = Self.folds(of: log)
                committed = folds
                // The node may be asked before it has read a record.
                return follow()
            }
            for partition in folds.indices { read(partition) }
            if process.chance(50) { committed = folds }
            follow()
        }
    }

    private func read(_ partition: Int) {
        let from = folds[partition].next
        // After a rush of events, small pieces would take minutes.
        let bytes = log.head(partition) - from > 5_000 ? 1 << 20 : 4_000
        guard let batch = try? log.partitions[partition].batch(partition, from: from, to: .max - 1, bytes: bytes)
        else { return }
        for entry in batch.entries {
            batch.withRecord(entry) { key, value in
                _ = folds[partition].read(key: key, value: value, seq: entry.seq)
            }
        }
    }

    /// Returns a snapshot, or a delta if `after` ≥ 0.
    func state(of stream: StreamName, after: Seq, epoch: Epoch?) -> (Int, [UInt8]) {
        guard epoch == nil || epoch == log.epoch else { return (409, Array(#"{"code":"epoch_changed"}"#.utf8)) }
        guard var fold = fold(of: stream), after <= fold.seq else {
            return (503, Array(#"{"code":"node_behind"}"#.utf8))
        }
        var lines: [UInt8] = []
        do throws(ReelError) {
            var writer = try fold.snapshot(after: after)
            writer.writeAll(to: &lines)
        } catch {
            return (error.code.status, Array(#"{"code":"\#(error.code.rawValue)"}"#.utf8))
        }
        return (200, lines)
    }

    /// Returns the state of a stream as far as it is folded; nil: the node has folded only a part of the seeds.
    func fold(of stream: StreamName) -> Fold? {
        let partition = stream.partition(of: folds.count)
        let position = folds[partition].next - 1
        guard !folds[partition].isInsideSeeds(of: log) else { return nil }
        var fold =
            folds[partition].streams[stream]
            ?? Fold(stream: stream, partition: partition, epoch: log.epoch)
        if case .ended(let next) = folds[partition].phase {
            fold.apply(.end(next), seq: position)
        } else {
            fold.advance(to: position)
        }
        return fold
    }
}
