import Foundation
import ReelCheck
import ReelCore
import ReelNet
import Synchronization
import TestSupport
import Testing

/// A site that publishes over HTTP without a pause, and records its acks. If a node does not answer, it sends the same
/// events to the next node, until one answers.
///
/// Its first event creates an object; each later one adds 1 to the object's `n`. So `n` is the last consumed op
/// exactly if each op was consumed once.
final class Author: Sendable {
    let site: Site
    let stream: String
    private let ports: [UInt16]
    private let state = Mutex(State())

    private struct State {
        var acked: [Op: Seq] = [:]
        var refusals: [String] = []
        var isStopping = false
    }

    init(_ number: Int, of stream: String, through ports: [UInt16]) {
        site = Site(high: 0xA0, low: UInt64(number))
        self.stream = stream
        self.ports = ports
    }

    /// The seq of each acked op.
    var acked: [Op: Seq] { state.withLock { $0.acked } }
    /// Answers of nodes that are neither an ack nor a temporary refusal.
    var refusals: [String] { state.withLock { $0.refusals } }

    /// Ends the author once all its sent events are acked.
    func stop() { state.withLock { $0.isStopping = true } }

    func run() async {
        var (next, node): (Op, Int) = (0, 0)
        while !state.withLock({ $0.isStopping && $0.refusals.isEmpty || $0.refusals.count > 20 }), !Task.isCancelled {
            let ops = next..<next + Op(1 + next % 4)
            let body = #"{"events":[\#(ops.map(event).joined(separator: ","))]}"#
            let answer = try? await Asker.ask(
                "POST",
                port: ports[node % ports.count],
                "/v1/streams/\(stream)/events",
                body: body
            )
            guard let answer, answer.status == 200 else {
                if let answer, answer.status != 503 {
                    state.withLock { $0.refusals.append(String(decoding: answer.body, as: UTF8.self)) }
                }
                node += 1
                try? await Task.sleep(for: .milliseconds(5))
                continue
            }
            note(answer.body, ops)
            next = ops.upperBound
        }
    }

    private func event(_ op: Op) -> String {
        let content = op == 0 ? #""fields":{"n":0}"# : #""ops":{"n":{"inc":1}}"#
        let members = #""model":"counter","id":"\#(site)",\#(content)"#
        return EventText.sent(op == 0 ? "insert" : "update", site, op, members).text
    }

    private func note(_ body: [UInt8], _ ops: Range<Op>) {
        let answer = try? JSONSerialization.jsonObject(with: Data(body)) as? [String: Any]
        let acks = answer?["acks"] as? [[String: Any]] ?? []
        state.withLock { state in
            if acks.count != ops.count { state.refusals.append(String(decoding: body, as: UTF8.self)) }
            for ack in acks {
                guard let op = ack["op"] as? Op, let seq = ack["seq"] as? Seq else { continue }
                state.acked[op] = seq
            }
        }
    }
}

/// The records of a log, as `reel dump` prints them, and the checker's fold of one stream.
struct DumpedLog {
    let stream: String
    private let log: String
    private var fold: NaiveFold?
    /// The outcome at each seq of the partition.
    private(set) var outcomes: [Seq: String] = [:]
    /// The key and the value at each seq.
    private(set) var records: [Seq: (key: String, value: String)] = [:]

    /// Creates the dump of a stream in the log at this path.
    init(of stream: String, at log: String) {
        self.stream = stream
        self.log = log
    }

    /// Reads and folds more records, up to a seq or to the log's end.
    mutating func fold(upTo end: Seq? = nil) async throws {
        let partition = StreamName(stream)?.partition(of: 4) ?? 0
        let words = ["dump", "--log", "sqlite:\(log)", "--partition", "\(partition)"]
        let seq = fold?.seq ?? -1
        let run = try await BuiltProgram.run(words + (seq < 0 ? [] : ["--after", "\(seq)"]))
        guard run.code == 0 else { throw NeverCame(description: "a dump: \(run)") }
        var fold = fold ?? NaiveFold(epoch: "0000000000000000", partition: partition, of: 4)
        for line in run.output.split(separator: "\n") {
            guard let record = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any],
                let seq = record["seq"] as? Seq, let key = record["key"] as? String,
                let value = record["value"] as? String
            else { throw NeverCame(description: "a record: \(line)") }
            if let end, seq > end { break }
            #expect(seq == fold.seq + 1, "every seq of the partition is in the dump")
            outcomes[seq] = fold.apply(seq: seq, key: Array(key.utf8), value: Array(value.utf8))?.description
            records[seq] = (key, value)
        }
        self.fold = fold
    }

    var seq: Seq { fold?.seq ?? -1 }
    var digest: String? { fold?.digest(of: stream) }

    /// Returns true if a snapshot has the same state as the checker's fold, at the same seq.
    func agrees(with snapshot: [UInt8]) throws -> Bool {
        let read = try NaiveSnapshot(snapshot)
        guard read.seq == seq, read.digest == digest, read.digest == read.declaredDigest else { return false }
        return true
    }

    /// Checks that each acked event is at its seq, and that each op of the author was applied once and in order.
    func verify(_ author: Author) throws {
        let site = author.site.description
        #expect(author.refusals.isEmpty, "\(author.refusals)")
        var applied: [Op] = []
        for (seq, record) in records.sorted(by: { $0.key < $1.key }) {
            guard record.value.contains(#""site":"\#(site)""#), outcomes[seq] == "applied" else { continue }
            let event = try JSONSerialization.jsonObject(with: Data(record.value.utf8)) as? [String: Any]
            applied.append(event?["op"] as? Op ?? -1)
        }
        #expect(applied == Array(0..<Op(applied.count)), "site \(site)")
        for (op, seq) in author.acked {
            let value = records[seq]?.value ?? "nothing"
            #expect(
                value.contains(#""site":"\#(site)""#) && value.contains(#""op":\#(op),"#),
                "op \(op) was acked at seq \(seq), where there is \(value)"
            )
        }
        #expect(author.acked.count <= applied.count, "what was acked has been applied")
    }
}
