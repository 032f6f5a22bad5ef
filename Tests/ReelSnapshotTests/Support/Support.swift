import Foundation
import ReelCore
import ReelLog
import ReelNode
import TestSupport
import Testing

@testable import ReelSnapshot

/// A new folder that is removed with its last reference.
final class Folder: Sendable {
    let path: String

    init() throws {
        path = NSTemporaryDirectory() + "reel-snapshot-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }
}

/// Random events of a few sites on a few objects, from a seed, as a stream of an app has them.
struct Writer {
    var generator: SeededNumbers
    var ops: [Int: Op] = [:]
    var seq: Seq = .none

    init(seed: UInt64) { generator = SeededNumbers(seed) }

    /// Returns the value of the next event. `seq` is the seq that the event will have.
    mutating func event(at seq: Seq, objects: Int = 20) -> String {
        let number = Int.random(in: 0..<4, using: &generator)
        let op = ops[number, default: -1] + 1
        ops[number] = op
        let site = "00000000-0000-4000-8000-00000000000\(number)"
        let id = "o\(Int.random(in: 0..<objects, using: &generator))"
        let base = max(-1, seq - 1 - Int64.random(in: 0...5, using: &generator))
        func text(_ type: String, fields: String? = nil, ops: String? = nil) -> String {
            EventText.logged(type, site, op, base: base, model: "m", id: id, fields: fields, ops: ops).text
        }
        switch Int.random(in: 0..<10, using: &generator) {
        case 0: return text("delete")
        case 1...3: return text("insert", fields: #"{"a":\#(seq),"t":"text \#(seq)"}"#)
        case 4: return text("update", ops: #"{"t":{"splice":[[0,0,"é\#(seq)"]]}}"#)
        default: return text("update", fields: #"{"a":\#(seq)}"#)
        }
    }
}

extension EventLog {
    /// Appends values under a key and waits until they are durable.
    @discardableResult
    func append(_ values: [String], key: String, to partition: Int) async throws -> [Seq] {
        let records = values.map { LogAppend(key: Array(key.utf8), value: Array($0.utf8)) }
        return try await withCheckedThrowingContinuation { continuation in
            append(records, to: partition) { continuation.resume(with: $0) }
        }
    }
}

/// Returns the fold of a stream, computed from the log, up to and including the seq `last`.
func foldOfLog(_ log: any EventLog, _ stream: StreamName, to last: Seq) throws -> Fold {
    let partition = stream.partition(of: log.partitions)
    var fold = Fold(stream: stream, partition: partition, epoch: log.epoch)
    var rules = PartitionRules(partition: partition, of: log.partitions)
    var event = ParsedEvent()
    var next: Seq = 0
    while next <= last {
        let batch = try log.read(partition, from: next, to: last, bytes: 1 << 20)
        for entry in batch.entries {
            batch.withRecord(entry) { key, value in
                switch rules.read(key: key, value: value, into: &event) {
                case .event where Array(key) == stream.key: _ = fold.apply(event, value, seq: entry.seq)
                case .barrier(.retire(let before, stream)):
                    fold.apply(.retire(before: before, stream: stream), seq: entry.seq)
                default: break
                }
            }
        }
        next = batch.seqs.upperBound
    }
    fold.advance(to: last)
    return fold
}

extension Fold {
    var lines: String {
        get throws {
            var fold = self
            var bytes: [UInt8] = []
            var writer = try fold.snapshot()
            writer.writeAll(to: &bytes)
            return String(decoding: bytes, as: UTF8.self)
        }
    }
}

extension StateReader.Lines {
    var text: String {
        get throws {
            var bytes: [UInt8] = []
            while bytes.count < spool.count { bytes += try spool.piece(from: bytes.count) }
            return String(decoding: bytes, as: UTF8.self)
        }
    }
}
