import Foundation

@testable import ReelCheck

/// A history of Tests/Vectors/histories: the records of a partition with their outcomes, and the final state of one
/// stream. Tests/Vectors/README.md describes the members.
struct Vector {
    struct Step {
        var record: LogRecord
        /// The number of noops that the record stands for. Their seqs and ops are consecutive.
        var noops = 1
        var outcome: String
    }

    let name: String
    let stream: String
    let epoch: String
    let partition: Int
    let partitions: Int
    let steps: [Step]
    let digest: String
    let snapshot: [UInt8]
    let deltas: [(after: Int64, lines: [UInt8])]
    private let what: String

    static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Vectors")
        .standardized

    static var names: [String] {
        let files = try? FileManager.default.contentsOfDirectory(atPath: folder.appending(path: "histories").path)
        return (files ?? []).filter { $0.hasSuffix(".json") }.map { String($0.dropLast(5)) }.sorted()
    }

    init(_ name: String) throws {
        let file = try Data(contentsOf: Self.folder.appending(path: "histories/\(name).json"))
        let json = try JSON(reading: Array(file), depth: 8)
        func text(_ member: String) -> String { json[member]?.text?.string ?? "" }
        func lines(_ json: JSON?) -> [UInt8] { (json?.array ?? []).flatMap { ($0.text?.bytes ?? []) + [0x0A] } }
        self.name = name
        what = text("what")
        stream = text("stream")
        epoch = text("epoch")
        partition = Int(json["partition"]?.integer ?? 0)
        partitions = Int(json["partitions"]?.integer ?? 1)
        digest = text("digest")
        snapshot = lines(json["snapshot"])
        deltas = (json["deltas"]?.array ?? []).map { ($0["after"]?.integer ?? $0.integer ?? 0, lines($0["lines"])) }
        steps = (json["records"]?.array ?? []).map { step in
            var value = step["value"]?.text?.bytes ?? []
            if step["noops"] != nil { value = Self.noop(step["op"]?.integer ?? 0, step["site"]?.text ?? Text("")) }
            return Step(
                record: LogRecord(
                    seq: step["seq"]?.integer ?? 0,
                    key: step["key"]?.text?.bytes ?? [],
                    value: value
                ),
                noops: Int(step["noops"]?.integer ?? 1),
                outcome: step["outcome"]?.text?.string ?? ""
            )
        }
    }

    private static func noop(_ op: Int64, _ site: Text) -> [UInt8] {
        Array(#"{"base":-1,"op":\#(op),"site":"\#(site.string)","type":"noop"}"#.utf8)
    }

    /// Returns all records of a step.
    func records(of step: Step) throws -> [LogRecord] {
        guard step.noops > 1 else { return [step.record] }
        let first = try JSON(reading: step.record.value, depth: 1)
        return (0..<Int64(step.noops)).map { index in
            let value = Self.noop((first["op"]?.integer ?? 0) + index, first["site"]?.text ?? Text(""))
            return LogRecord(seq: step.record.seq + index, key: step.record.key, value: value)
        }
    }
}

// MARK: - Writing

extension Vector {
    /// Computes outcomes, state and deltas with the naive fold, and writes the file again.
    func rewrite() throws {
        var fold = NaiveFold(epoch: epoch, partition: partition, of: partitions)
        var records: [String] = []
        for step in steps {
            var outcomes: [String] = []
            for record in try self.records(of: step) {
                outcomes.append(fold.apply(seq: record.seq, key: record.key, value: record.value)?.description ?? "")
            }
            guard Set(outcomes).count == 1 else { throw Fault("noops of several outcomes") }
            var members: [JSON.Member] = [
                .init("key", .text(Text(step.record.key))), .init("outcome", .string(outcomes[0])),
                .init("seq", .integer(step.record.seq)),
            ]
            if step.noops > 1 {
                let noop = try JSON(reading: step.record.value, depth: 1)
                members += [
                    .init("noops", .integer(Int64(step.noops))), .init("op", noop["op"] ?? .null),
                    .init("site", noop["site"] ?? .null),
                ]
            } else {
                members.append(.init("value", .text(Text(step.record.value))))
            }
            records.append(line(.object(members)))
        }
        let state = fold.streams[Text(stream)] ?? StreamState()
        let hashes = state.digestLines.map { (Text($0), finalized(fnv1a($0))) }.sorted { $0.0 < $1.0 }.map {
            line(.array([.text($0.0), .string(hex($0.1, digits: 16))]))
        }
        let deltas = deltas.map { delta in
            "{\"after\":\(delta.after),\"lines\":\(list(lines(fold.snapshot(of: stream, after: delta.after))))}"
        }
        let text = """
            {
            "name":\(line(.string(name))),
            "what":\(line(.string(what))),
            "epoch":"\(epoch)",
            "stream":\(line(.string(stream))),
            "partition":\(partition),
            "partitions":\(partitions),
            "records":\(list(records)),
            "digest":"\(fold.digest(of: stream))",
            "digestLines":\(list(hashes)),
            "snapshot":\(list(lines(fold.snapshot(of: stream)))),
            "deltas":\(list(deltas))
            }

            """
        try Data(text.utf8).write(to: Self.folder.appending(path: "histories/\(name).json"))
    }

    private func line(_ json: JSON) -> String {
        String(decoding: json.canonical, as: UTF8.self)
    }

    private func lines(_ bytes: [UInt8]?) -> [String] {
        (bytes ?? []).split(separator: 0x0A).map { line(.text(Text($0))) }
    }

    private func list(_ lines: [String]) -> String {
        lines.isEmpty ? "[]" : "[\n" + lines.joined(separator: ",\n") + "\n]"
    }
}
