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

/// Tests the answers for which a gateway needs a snapshot node, in its own process or over HTTP.
@Suite(.timeLimit(.minutes(15))) struct StateOverHTTPTests {
    private let site = Site(high: 1, low: 1)
    private let path = "/v1/streams/todo"

    private func eachWay(_ body: (LiveGateway) async throws -> Void) async throws {
        try await StateWay.each { try await body($0) }
    }

    private func json(_ answer: HTTPResponse) throws -> [String: Any] { try answer.members }

    private func lines(_ answer: HTTPResponse) throws -> [[String: Any]] {
        try answer.body.split(separator: 0x0a).map {
            try #require(try JSONSerialization.jsonObject(with: Data($0)) as? [String: Any])
        }
    }

    private func event(_ op: Int, _ type: String, _ members: String = "") -> String {
        EventText.sent(type, site, op, members).text
    }

    @Test("a publish with outcome=1 returns the outcome of each event") func publishReturnsOutcomes() async throws {
        try await eachWay { live in
            func outcomes(_ events: String...) async throws -> [String] {
                let body = #"{"epoch":"\#(live.log.epoch)","events":[\#(events.joined(separator: ","))]}"#
                let answer = try await live.ask("POST", path + "/events?outcome=1", body: body)
                #expect(answer.status == 200, "\(String(decoding: answer.body, as: UTF8.self))")
                return try #require(try json(answer)["acks"] as? [[String: Any]]).compactMap {
                    $0["outcome"] as? String
                }
            }
            let insert = event(0, "insert", #""model":"m","id":"a","fields":{"n":1}"#)
            let update = event(1, "update", #""model":"m","id":"b","fields":{"n":1}"#)
            #expect(try await outcomes(insert, update) == ["applied", "rejected(no_object)"])
            #expect(try await outcomes(insert) == ["duplicate"])
            let guarded = event(2, "update", #""model":"m","id":"a","if":{"n":-1},"fields":{"n":2}"#)
            #expect(try await outcomes(guarded, event(3, "noop")) == ["rejected(guard)", "applied"])
            let refused = try await live.ask("POST", path + "/events?outcome=2", body: "{}")
            #expect(refused.status == 400)
        }
    }

    @Test("the sites of a stream come page by page, from a node in the process and from another one")
    func sites() async throws {
        try await eachWay { live in
            for number in 1...3 {
                try await live.publish("todo", Sent.insert(Site(high: UInt64(number), low: 1), 0, "\(number)"))
            }
            let at = "epoch=\(live.log.epoch)&min_seq=2"
            let first = try json(try await live.get(path + "/sites?limit=2&\(at)"))
            #expect(first["seq"] as? Int == 2 && first["to"] as? Int == 1 && first["living"] as? Int == 3)
            #expect(first["limit"] as? Int == 100_000 && first["ended"] as? Int == 0)
            let rest = try json(try await live.get(path + "/sites?limit=2&after=1&\(at)"))
            let sites = try [first, rest].flatMap { try #require($0["sites"] as? [[String: Any]]) }
            #expect(sites.map { $0["seq"] as? Int } == [0, 1, 2] && rest["to"] as? Int == 2)
            #expect(sites.map { $0["idle_seqs"] as? Int } == [2, 1, 0])
            #expect(sites.allSatisfy { $0["end"] as? Int == -1 && $0["at"] is Int && $0["idle_ms"] is Int })
            let none = try json(try await live.get("/v1/streams/nobodys/sites?\(at)"))
            #expect((none["sites"] as? [Any])?.isEmpty == true && none["living"] as? Int == 0)

            for target in [
                "/sites?limit=0", "/sites?limit=10001", "/sites?after=1", "/sites?after=x&\(at)", "/sites?min_seq=1",
                "/sites?models=a", "/sites?epoch=x",
            ] { #expect(try await live.get(path + target).status == 400, "\(target)") }
            #expect(try await live.get(path + "/sites?epoch=0000000000000007").status == 409)
            #expect(try await live.ask("POST", path + "/sites", body: "{}").status == 405)
        }
    }

    @Test("a HEAD request for state returns the same status and headers as GET") func stateHeadMatchesGet() async throws
    {
        try await eachWay { live in
            try await live.publish("todo", Sent.insert(site, 0, "a"))
            let asked = "epoch=\(live.log.epoch)&min_seq=0"
            let targets: [(String, Int)] = [
                ("/snapshot?\(asked)", 200), ("/delta?after=0&\(asked)", 200), ("/objects/task/a", 200),
                ("/objects/task/b", 404),
            ]
            for (target, status) in targets {
                let (get, head) = (try await live.get(path + target), try await live.ask("HEAD", path + target))
                #expect(get.status == status && head.status == status, "\(target)")
                #expect(head.body.isEmpty && head.headers["content-length"] == "\(get.body.count)", "\(target)")
                for name in ["content-type", "etag"] {
                    #expect(head.headers[name] == get.headers[name], "\(target): \(name)")
                }
            }
        }
    }

    @Test("a client can request the outcome of an ack later") func outcomeOfEarlierAck() async throws {
        try await eachWay { live in
            try await live.publish("todo", Sent.insert(site, 0, "a"))
            func ask(_ site: Site, _ op: Int, _ seq: Int) async throws -> (Int, String) {
                let ack = #"{"site":"\#(site)","op":\#(op),"seq":\#(seq)}"#
                let body = #"{"epoch":"\#(live.log.epoch)","acks":[\#(ack)]}"#
                let answer = try await live.ask("POST", path + "/outcomes", body: body)
                return (answer.status, String(decoding: answer.body, as: UTF8.self))
            }
            let (status, text) = try await ask(site, 0, 0)
            #expect(status == 200 && text.contains(#""outcome":"applied""#), "\(text)")
            #expect(try await ask(site, 1, 0).0 == 400, "another event stands there")
            #expect(try await ask(Site(high: 2, low: 2), 0, 0).0 == 400)
            for body in ["{}", #"{"epoch":"\#(live.log.epoch)","acks":[]}"#, "[]", ""] {
                #expect(try await live.ask("POST", path + "/outcomes", body: body).status == 400, "\(body)")
            }
        }
    }

    @Test("a sync request refuses a models parameter and ignores a models member") func syncHasNoModels() async throws {
        try await eachWay { live in
            let insert = event(0, "insert", #""model":"m","id":"a","fields":{"n":1}"#)
            let body = #"{"epoch":"\#(live.log.epoch)","after":-1,"models":["other"],"events":[\#(insert)]}"#
            #expect(try await live.ask("POST", path + "/sync?models=other", body: body).status == 400)
            #expect(try live.log.bounds(0).last == -1, "nothing is published")
            let answer = try await live.ask("POST", path + "/sync", body: body)
            #expect(answer.status == 200)
            #expect(try lines(answer).contains { $0["object"] as? [String] == ["m", "a"] }, "the member means nothing")
        }
    }

    @Test("one round trip pushes and pulls") func oneRoundTripPushes() async throws {
        try await eachWay { live in
            func sync(_ after: Int, _ events: String...) async throws -> (HTTPResponse, [[String: Any]]) {
                let body =
                    #"{"epoch":"\#(live.log.epoch)","after":\#(after),"events":[\#(events.joined(separator: ","))]}"#
                let answer = try await live.ask("POST", path + "/sync", body: body)
                return (answer, answer.status == 200 ? try lines(answer) : [])
            }
            let (first, rows) = try await sync(-1, event(0, "insert", #""model":"m","id":"a","fields":{"n":1}"#))
            #expect(first.status == 200 && first.headers["content-type"] == "application/x-ndjson")
            #expect((rows[0]["acks"] as? [[String: Any]])?.first?["seq"] as? Int == 0)
            #expect(rows[1]["after"] as? Int == -1 && rows[1]["seq"] as? Int == 0)
            #expect(rows.contains { $0["object"] as? [String] == ["m", "a"] }, "what was pushed is in what is pulled")
            try await live.publish("todo", Sent.insert(Site(high: 2, low: 2), 0, "b"))
            let (_, more) = try await sync(0, event(1, "delete", #""model":"m","id":"a""#))
            #expect(more[1]["after"] as? Int == 0 && more[1]["seq"] as? Int == 2)
            #expect(more.contains { $0["deleted"] as? [String] == ["m", "a"] })
            #expect(more.contains { $0["object"] as? [String] == ["task", "b"] })
            #expect(more.last?["end"] as? Bool == true)
            let (_, pull) = try await sync(2)
            #expect((pull[0]["acks"] as? [Any])?.isEmpty == true && pull.last?["count"] as? Int == 0)
            let wrong = #"{"epoch":"0000000000000007","after":-1,"events":[\#(event(2, "noop"))]}"#
            #expect(try await live.ask("POST", path + "/sync", body: wrong).status == 409)
            #expect(try await sync(99, event(2, "noop")).0.status == 409, "nothing is pushed from ahead of the log")
            #expect(try live.log.bounds(0).last == 2)
            #expect(try await live.ask("POST", path + "/sync", body: #"{"after":-1}"#).status == 400)
        }
    }

    @Test("a snapshot that the client holds is not sent again") func aSnapshotThatThe() async throws {
        try await eachWay { live in
            try await live.publish("todo", Sent.insert(site, 0, "a"))
            let at = "?epoch=\(live.log.epoch)&min_seq=0"
            for target in ["/snapshot" + at, "/delta" + at + "&after=0"] {
                let answer = try await live.get(path + target)
                let etag = try #require(answer.headers["etag"])
                #expect(answer.status == 200 && etag == "\"\(live.log.epoch):0\"")
                for (held, told) in [(etag, etag), ("\"x\", W/" + etag, "W/" + etag), ("*", etag)] {
                    let again = try await live.ask("GET", path + target, headers: ["if-none-match": held])
                    #expect(again.status == 304 && again.body.isEmpty)
                    #expect(again.headers["etag"] == told, "as the client holds it: weak where it was packed")
                }
            }
            let etag = "\"\(live.log.epoch):0\""
            try await live.publish("other", Sent.insert(site, 0, "a"))
            let later = "/snapshot?epoch=\(live.log.epoch)&min_seq=1"
            #expect(try await live.ask("GET", path + later, headers: ["if-none-match": etag]).status == 200)
        }
    }

    @Test("the gateway compresses large answers for clients that accept gzip") func compressesLargeAnswers()
        async throws
    {
        try await eachWay { live in
            let text = String(repeating: "reel ", count: 2_000)
            for op in 0..<40 { try await live.publish("todo", Sent.insert(site, Int64(op), "\(op)", text)) }
            let at = "?epoch=\(live.log.epoch)&min_seq=39"
            for target in ["/snapshot" + at, "/events?limit=50"] {
                let plain = try await live.get(path + target)
                #expect(plain.status == 200 && plain.headers["content-encoding"] == nil && plain.body.count > 400_000)
                #expect(plain.headers.all("vary") == ["accept-encoding"])
                let packed = try await live.ask("GET", path + target, headers: ["accept-encoding": "br, gzip;q=0.8"])
                #expect(packed.status == 200 && packed.headers["content-encoding"] == "gzip")
                #expect(packed.body.count < 40_000 && packed.body.prefix(2) == [0x1f, 0x8b])
                #expect(packed.headers["etag"].map { $0.hasPrefix("W/") } ?? true)
                #expect(try gunzip(packed.body) == plain.body, "\(target)")
                for unwanted in ["gzip;q=0", "identity", ""] {
                    let answer = try await live.ask("GET", path + target, headers: ["accept-encoding": unwanted])
                    #expect(answer.headers["content-encoding"] == nil, "\(unwanted)")
                }
            }
            let small = try await live.ask("GET", path + "/head", headers: ["accept-encoding": "gzip"])
            #expect(small.headers["content-encoding"] == nil)
        }
    }

    /// Unpacks the bytes with the program `gzip`, as an independent implementation.
    private func gunzip(_ bytes: [UInt8]) throws -> [UInt8] {
        let file = FileManager.default.temporaryDirectory.appending(path: "reel-\(UUID().uuidString).gz")
        try Data(bytes).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let process = Process()
        let pipe = Pipe()
        process.executableURL = URL(filePath: "/bin/gzip")
        process.arguments = ["-dc", file.path]
        process.standardOutput = pipe
        try process.run()
        let plain = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
        return Array(plain)
    }
}
