import EventLogConformance
import Foundation
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import ReelSnapshot
import TestSupport
import Testing

@testable import ReelGateway

/// The rest of a snapshot or delta that was cut, from a node in the process and from another one.
@Suite(.timeLimit(.minutes(15))) struct RestOverHTTPTests {
    private let path = "/v1/streams/todo"

    private func lines(_ answer: HTTPResponse) -> [String] {
        String(decoding: answer.body, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    /// Publishes one event of a site that the gateway makes, and returns its seq.
    private func publish(_ live: LiveGateway, _ event: String) async throws -> Int {
        let body = #"{"events":[\#(event)]}"#
        let answer = try await live.ask("POST", path + "/events?outcome=1", body: body)
        let acks = try #require(try answer.members["acks"] as? [[String: Any]])
        return try #require(acks.first?["seq"] as? Int)
    }

    private func insert(_ id: String) -> String {
        #"{"type":"insert","model":"m","id":"\#(id)","fields":{"n":1}}"#
    }

    @Test("a client that was cut gets the rest: what changed up to its last object, and everything beyond it")
    func rest() async throws {
        try await StateWay.each { live in
            // The names need percent-encoding and escapes on their way.
            for id in ["1", "é&\\\"+ %", "ü"] { _ = try await publish(live, insert(id)) }
            let after = try await publish(live, #"{"type":"delete","model":"m","id":"1"}"#)
            let seq = try await publish(live, insert("0"))
            let id = "%C3%A9%26%5C%22%2B%20%25"
            let at = "/delta?epoch=\(live.log.epoch)&after=\(after)&min_seq=\(seq)&model=m&id=\(id)"
            let whole = lines(try await live.get(path + "/snapshot?epoch=\(live.log.epoch)&min_seq=\(seq)"))
            let answer = try await live.get(path + at)
            #expect(answer.status == 200 && answer.headers["content-type"] == "application/x-ndjson")
            let rest = lines(answer)
            let name = #"é&\\\"+ %"#
            #expect(rest.first?.hasPrefix(#"{"after":\#(after),"beyond":["m","\#(name)",-1],"consumed":5,"#) == true)
            func names(_ lines: [String]) -> [Substring] {
                lines.compactMap { $0.firstMatch(of: /"(?:object|deleted)":(\[.*?\]),"seq"/)?.output.1 }
            }
            #expect(names(rest) == [#"["m","0"]"#, #"["m","ü"]"#, #"["m","1"]"#])
            #expect(rest.last?.suffix(40) == whole.last?.suffix(40), "the digest is that of the whole state")
            let delta = lines(try await live.get(path + at + "&beyond=\(after - 2)"))
            #expect(names(delta) == [#"["m","0"]"#, #"["m","ü"]"#, #"["m","1"]"#])
            let late = lines(try await live.get(path + at + "&beyond=\(after)"))
            #expect(late.first?.contains(#""beyond":["m","\#(name)",\#(after)]"#) == true)
            #expect(names(late) == [#"["m","0"]"#])
        }
    }

    @Test("a rest with wrong values is refused")
    func badQuestions() async throws {
        try await StateWay.each { live in
            let seq = try await publish(live, insert("1"))
            let at = path + "/delta?epoch=\(live.log.epoch)&min_seq=\(seq)&after=\(seq)"
            #expect(try await live.get(at + "&model=m&id=1").status == 200)
            let long = String(repeating: "a", count: 129)
            for query in [
                "model=m", "id=1", "beyond=0", "model=m&beyond=0", "model=&id=1", "model=m&id=", "model=m&id=a%1F",
                "model=m&id=\(long)", "model=m&id=1&beyond=-2", "model=m&id=1&beyond=\(seq + 1)",
                "model=m&id=1&beyond=x", "model=m&id=1&id=2",
            ] {
                let answer = try await live.get(at + "&" + query)
                #expect(answer.status == 400, "\(query)")
            }
            let other = path + "/delta?epoch=0000000000000007&after=0&model=m&id=1"
            #expect(try await live.get(other).status == 409)
            let ahead = path + "/delta?epoch=\(live.log.epoch)&after=\(seq + 9)&model=m&id=1"
            #expect(try await live.get(ahead).status == 503)
            #expect(try await live.get(path + "/snapshot?model=m&id=1").status == 400)
        }
    }

    @Test("a rest that finds no place among the answers in the making is `overloaded`")
    func limits() async throws {
        try await StateWay.each({ _ in }, node: { $0.openResponses = 0 }) { live in
            try await live.publish("todo", Sent.insert(Site(high: 1, low: 1), 0, "a"))
            let answer = try await live.get(
                path + "/delta?epoch=\(live.log.epoch)&after=0&min_seq=0&model=m&id=a"
            )
            #expect(answer.status == 503 && answer.headers["retry-after"] == "1")
            #expect(try answer.members["code"] as? String == "overloaded")
        }
    }

    @Test("a rest needs the right to read the stream")
    func rights() async throws {
        let keys = try KeyFile()
        try await StateWay.each({ $0.node.tokens = keys.gate }) { live in
            let token = try keys.token(read: "other", publish: "*")
            let target = path + "/delta?epoch=\(live.log.epoch)&after=0&model=m&id=1"
            let answer = try await live.ask("GET", target, headers: ["authorization": "Bearer \(token)"])
            #expect(answer.status == 403)
            #expect(try await live.get(target).status == 401)
        }
    }
}
