import Foundation
import ReelCheck
import Testing

/// Tests that the acks of a site come in the order of its ops. A resend is acked again, in the same order.
@Suite struct AckOrderTests {
    private func verdict(_ lines: [String]) async throws -> Verdict {
        let folder = FileManager.default.temporaryDirectory.path + "/reel-acks-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let site = "00000000-0000-4000-8000-000000000001"
        let head = [
            #"{"e":"begin","ms":1,"history":1,"kind":"client","wall":1,"who":"ann"}"#,
            #"{"e":"connect","ms":1,"epoch":"00000000000000aa","node":"n","partitions":1,"url":"http://n:1"}"#,
            #"{"e":"site","n":0,"site":"\#(site)"}"#,
        ]
        let end = #"{"e":"end","ms":9,"unacked":0}"#
        try (head + lines + [end]).map { $0 + "\n" }.joined()
            .write(toFile: folder + "/ann.history.jsonl", atomically: true, encoding: .utf8)
        // The log contains each event twice.
        let log = (0..<6).map { seq in
            let event = #"{\"base\":-1,\"op\":\#(seq % 3),\"site\":\"\#(site)\",\"type\":\"noop\"}"#
            return #"{"partition":0,"seq":\#(seq),"key":"s","value":"\#(event)"}"# + "\n"
        }
        try log.joined().write(toFile: folder + "/log.jsonl", atomically: true, encoding: .utf8)
        return await (try RunCheck(folder: folder, logs: [])).verdict()
    }

    private func sent(_ first: Int, _ last: Int) -> String {
        #"{"e":"sent","ms":2,"stream":"s","site":0,"ops":[\#(first),\#(last)]}"#
    }

    private func acked(_ acks: (op: Int, seq: Int)...) -> String {
        let acks = acks.map { "[0,\($0.op),\($0.seq)]" }.joined(separator: ",")
        return #"{"e":"ack","ms":3,"stream":"s","epoch":"00000000000000aa","acks":[\#(acks)]}"#
    }

    @Test("acks in the order of op are fine") func acksInTheOrder() async throws {
        let verdict = try await verdict([sent(0, 2), acked((0, 0), (1, 1)), acked((2, 2))])
        #expect(verdict.word == .valid, "\(verdict.text)")
    }

    @Test("the checker accepts new acks for events that a client sent again") func acceptsAcksOfResends() async throws {
        for lines in [
            [sent(0, 2), acked((0, 0), (1, 1), (2, 2)), sent(0, 2), acked((0, 3), (1, 4), (2, 5))],
            [sent(0, 2), sent(0, 2), acked((0, 0), (1, 1), (2, 2)), acked((0, 3), (1, 4), (2, 5))],
            [sent(0, 2), sent(1, 2), acked((0, 0), (1, 1), (2, 2), (1, 4), (2, 5))],
        ] {
            let verdict = try await verdict(lines)
            #expect(verdict.word == .valid, "\(verdict.text)")
        }
    }

    @Test("the checker reports an ack that goes back without a resend") func reportsBackwardAck() async throws {
        for lines in [
            [sent(0, 2), acked((1, 1)), acked((0, 0))],
            [sent(0, 2), sent(1, 2), acked((0, 0), (1, 1), (2, 2), (0, 3))],
            [sent(0, 2), sent(1, 2), acked((0, 0), (1, 1), (2, 2), (1, 4), (2, 5), (1, 4))],
        ] {
            let verdict = try await verdict(lines)
            #expect(verdict.violations.map(\.invariant) == [.siteOrder], "\(verdict.text)")
        }
    }
}
