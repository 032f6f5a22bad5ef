import Foundation
import TestSupport
import Testing

@testable import ReelCheck

/// The evidence of a run: the records of the log and the lines of each history. A test starts from a valid run and
/// changes some lines.
struct RecordedRun {
    static let epoch = "00000000000000aa"

    var partitions = 1
    /// The records of each partition by seq; nil is an empty seq.
    var log: [[(key: String, value: String)?]] = [[]]
    /// The lines of each history by name.
    var histories: [String: [String]] = [:]
    /// The contents of other files by name.
    var files: [String: String] = [:]

    /// Returns the site with a small number.
    static func site(_ number: Int) -> String {
        "00000000-0000-4000-8000-" + hex(UInt64(number), digits: 12)
    }

    /// Returns the value of an event in the log.
    static func event(site number: Int, op: Int, base: Int = -1) -> String {
        let site = site(number)
        let (fields, ops) = op == 0 ? (#"{"n":0}"#, nil) : (nil, #"{"n":{"inc":1}}"#)
        let type = op == 0 ? "insert" : "update"
        return EventText.logged(type, site, op, base: Int64(base), model: "m", id: site, fields: fields, ops: ops).text
    }

    /// Returns the barrier that retires the sites of stream `s` that have consumed no event after a seq.
    static func retire(before seq: Int) -> String {
        #"{"retire":{"before":\#(seq),"stream":"s"},"type":"barrier"}"#
    }

    /// The seed that states that sites of a stream were retired.
    static let retiredSeed = #"{"line":{"retired":true},"type":"seed"}"#

    /// Returns the hash that stands for an event in a history.
    static func hash(_ value: String) -> String { hex(fnv1a(Array(value.utf8)), digits: 16) }

    // MARK: The small run

    /// Creates the small run: a publisher of six events, a reader of all of them, and a driver that asked for the
    /// state.
    init() {
        log = [(0..<6).map { ("s", Self.event(site: 1, op: $0)) }]
        let sent = (0..<6).map { #"{"e":"sent","ms":\#(20 + $0),"stream":"s","site":1,"ops":[\#($0),\#($0)]}"# }
        let acks = (0..<6).map {
            #"{"e":"ack","ms":\#(30 + $0),"stream":"s","epoch":"\#(Self.epoch)","acks":[[1,\#($0),\#($0)]]}"#
        }
        histories["publisher"] =
            begin("publisher") + [connect(), siteLine(1)] + sent + acks + [#"{"e":"end","ms":20000,"unacked":0}"#]
        histories["reader"] =
            begin("reader") + [
                connect(), subscribed("s", partition: 0, head: -1, after: -1),
                #"{"e":"upto","ms":11,"partition":0,"seq":-1}"#, siteLine(1),
                frame("s", partition: 0, from: 0, to: 2), frame("s", partition: 0, from: 3, to: 5),
                #"{"e":"reached","ms":20000,"stream":"s","epoch":"\#(Self.epoch)","seq":5}"#,
                #"{"e":"end","ms":20000,"unacked":0}"#,
            ]
        histories["driver"] = begin("driver", kind: "driver") + [state("s", seq: 5)]
        files["s.snapshot.jsonl"] = snapshot("s", seq: 5)
    }

    func begin(_ who: String, kind: String = "client") -> [String] {
        [#"{"e":"begin","ms":1,"history":1,"kind":"\#(kind)","wall":1000001,"who":"\#(who)"}"#]
    }

    func connect() -> String {
        #"{"e":"connect","ms":10,"epoch":"\#(Self.epoch)","node":"n","partitions":\#(partitions),"url":"http://a:1"}"#
    }

    func siteLine(_ number: Int) -> String {
        #"{"e":"site","n":\#(number),"site":"\#(Self.site(number))"}"#
    }

    func subscribed(_ stream: String, partition: Int, head: Int, after: Int) -> String {
        #"{"e":"subscribed","ms":10,"stream":"\#(stream)","epoch":"\#(Self.epoch)","partition":\#(partition),"first":0,"#
            + #""head":\#(head),"after":\#(after)}"#
    }

    /// Returns a frame that proves the range and contains all its events.
    func frame(_ stream: String, partition: Int, from: Int, to: Int, fetched: Bool = false, ms: Int = 40) -> String {
        let events = (from...max(from, to)).compactMap { seq -> String? in
            guard seq <= to, log[partition].indices.contains(seq), let record = log[partition][seq] else { return nil }
            guard let (site, op) = parts(record), record.key == stream else { return nil }
            return #"[\#(seq),\#(site),\#(op),"\#(Self.hash(record.value))"]"#
        }
        return #"{"e":"events","ms":\#(ms),"stream":"\#(stream)","from":\#(from),"to":\#(to)"#
            + (fetched ? #","fetched":true"# : "") + #","events":[\#(events.joined(separator: ","))]}"#
    }

    /// Returns the site and the op of a record, or nil if the record is not an event.
    func parts(_ record: (key: String, value: String)) -> (site: Int, op: Int)? {
        guard let site = record.value.range(of: #""site":"00000000-0000-4000-8000-"#),
            let op = record.value.range(of: #""op":"#),
            let number = Int(record.value[site.upperBound...].prefix(12), radix: 16)
        else { return nil }
        return Int(record.value[op.upperBound...].prefix { $0.isNumber }).map { (number, $0) }
    }

    /// Returns the fold of the log up to a seq.
    func fold(_ stream: String, seq: Int) -> NaiveFold {
        let number = partition(of: Array(stream.utf8), among: partitions)
        var fold = NaiveFold(epoch: Self.epoch, partition: number, of: partitions)
        for (place, record) in log[number].enumerated() where place <= seq {
            guard let record else { continue }
            _ = fold.apply(seq: Int64(place), key: Array(record.key.utf8), value: Array(record.value.utf8))
        }
        return fold
    }

    func state(_ stream: String, seq: Int) -> String {
        let digest = fold(stream, seq: seq).digest(of: stream)
        return #"{"e":"state","ms":50,"stream":"\#(stream)","epoch":"\#(Self.epoch)","seq":\#(seq),"#
            + #""digest":"\#(digest)","of":"http://a:1"}"#
    }

    func snapshot(_ stream: String, seq: Int, after: Int = -1) -> String {
        let lines = fold(stream, seq: seq).snapshot(of: stream, after: Int64(after)) ?? []
        return String(decoding: lines, as: UTF8.self)
    }

    // MARK: Running the checker

    /// Writes all files to a folder and returns the verdict of the checker.
    func verdict(logName: String = "log.jsonl", kcat: Bool = false) async throws -> Verdict {
        let folder = FileManager.default.temporaryDirectory.path + "/reel-check-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        for (name, lines) in histories {
            try (lines.joined(separator: "\n") + "\n")
                .write(toFile: "\(folder)/\(name).history.jsonl", atomically: false, encoding: .utf8)
        }
        for (name, text) in files {
            try text.write(toFile: "\(folder)/\(name)", atomically: false, encoding: .utf8)
        }
        if !logName.isEmpty {
            try dump(kcat: kcat).write(toFile: "\(folder)/\(logName)", atomically: false, encoding: .utf8)
        }
        return try await RunCheck(folder: folder, logs: []).verdict()
    }

    /// Returns the log in the format of `reel dump`, or of kcat.
    func dump(kcat: Bool = false) -> String {
        var text = ""
        for (partition, records) in log.enumerated() {
            for (seq, record) in records.enumerated() {
                guard let record else {
                    // kcat does not list empty seqs. Before its first record, a log counts as trimmed.
                    if !kcat, records[..<seq].contains(where: { $0 != nil }) {
                        text += #"{"partition":\#(partition),"seq":\#(seq),"empty":true}"# + "\n"
                    }
                    continue
                }
                let value = record.value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
                text +=
                    kcat
                    ? #"{"topic":"reel.\#(Self.epoch)","partition":\#(partition),"offset":\#(seq),"tstype":"create","#
                        + #""ts":1,"broker":0,"headers":["p","x"],"key":"\#(record.key)","payload":"\#(value)"}"# + "\n"
                    : #"{"partition":\#(partition),"seq":\#(seq),"key":"\#(record.key)","value":"\#(value)"}"# + "\n"
            }
        }
        return text
    }
}
