import ReelCore
import ReelLog

@testable import ReelCheck

/// The state that the naive fold computes from a whole log, in a form without seqs. Logs of several epochs can be
/// compared by it.
struct JudgedLog: Equatable {
    /// The lines of each stream. There is a line for each object with its fields and their last writers, for each
    /// tombstone, and for each site with its op. If sites of the stream were retired, there is one more line. Lines are
    /// bytes, because texts that only look equal are different.
    var streams: [String: Set<[UInt8]>] = [:]

    /// Folds the whole log, up to the end of its epoch.
    init(_ log: any EventLog) throws {
        for partition in 0..<log.partitions {
            var fold = NaiveFold(epoch: log.epoch.description, partition: partition, of: log.partitions)
            try log.scan(partition, from: 0) { batch in
                for entry in batch.entries {
                    batch.withRecord(entry) { key, value in
                        _ = fold.apply(seq: entry.seq, key: Array(key), value: Array(value))
                    }
                }
            }
            for (stream, state) in fold.streams { streams[stream.string] = Self.lines(state) }
        }
        streams = streams.filter { !$0.value.isEmpty }
    }

    private static func lines(_ state: StreamState) -> Set<[UInt8]> {
        var lines: [String] = []
        for (name, object) in state.objects {
            let fields = object.fields.map { name, field in
                "\(name.string.debugDescription)=\(String(decoding: field.value.canonical, as: UTF8.self))"
                    + " by \(field.writer.site.text.string)"
            }
            lines.append("\(name.model.string) \(name.id.string): \(fields.sorted())")
        }
        for name in state.tombstones.keys { lines.append("deleted \(name.model.string) \(name.id.string)") }
        for (site, known) in state.sites {
            lines.append("\(site.text.string) \(known.by?.string ?? "–") op \(known.op), ended \(known.end != -1)")
        }
        if state.retired != -1 { lines.append("retired") }
        return Set(lines.map { Array($0.utf8) })
    }
}
