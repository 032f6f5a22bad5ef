import ReelCore
import ReelNet
import Testing

@testable import ReelTool

/// Tests how `reel publish` prepares events before it sends them.
@Suite struct SentEventsTests {
    private func sent(_ events: String...) throws -> String {
        let requests = try SentEvents(events.map { Array($0.utf8)[...] }).requests
        let bodies = requests.map { SentEvents.body($0, epoch: nil) }
        return bodies.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "\n")
    }

    private let noop = #"{"type":"noop"}"#
    private let own = #"{"op":7,"site":"S","type":"noop"}"#

    @Test("events are sent as they were given; a node makes a site for those that name none")
    func eventsStayAsTheyAre() throws {
        #expect(try sent(noop, noop) == #"{"events":[{"type":"noop"},{"type":"noop"}]}"#)
        #expect(try sent(own, own) == #"{"events":[\#(own),\#(own)]}"#)
        #expect(try sent(" ", noop) == #"{"events":[{"type":"noop"}]}"#)
    }

    @Test("only some events with a site are refused, by the place of the first that differs")
    func allOrNoneHaveSites() throws {
        for (events, says) in [
            ([noop, " ", noop, own], "event 3 has a site or an op, unlike event 1"),
            ([own, noop], "event 2 has neither site nor op, unlike event 1"),
            ([noop, #"{"op":1,"type":"noop"}"#], "event 2 has a site or an op, unlike event 1"),
        ] {
            let complaint = #expect(throws: CommandError.self) { try SentEvents(events.map { Array($0.utf8)[...] }) }
            #expect(complaint?.code == .badData && complaint?.message.hasPrefix(says) == true, "\(says)")
        }
    }

    @Test("publish names the position of invalid JSON in the given text") func namesInvalidJSON() {
        let text = #"{"type":"insert","model":"task","id":"1","fields":{"n":1e999}}"#
        for (events, says) in [
            ([noop, text], "event 2: found 1e999 at byte 55,"), ([text, noop], "(bad_number)"),
            (["nonsense"], "event 1: found 'n' at byte 0, expected a value (bad_json)"),
            ([" ", "[1]"], "event 1: found an array at byte 0, expected an object (bad_event)"),
        ] {
            let complaint = #expect(throws: CommandError.self) { try SentEvents(events.map { Array($0.utf8)[...] }) }
            #expect(complaint?.code == .badData && complaint?.message.contains(says) == true, "\(says)")
            #expect(complaint?.message.hasSuffix("; no event is published") == true)
        }
    }

    @Test("seqs need their epoch") func seqsNeedTheirEpoch() async {
        let guarded = #"{"type":"update","model":"task","id":"1","fields":{"n":1},"if":{"n":4}}"#
        let based = #"{"type":"noop","base":4}"#
        for event in [guarded, based, #"{"type":"batch","events":[\#(guarded)]}"#] {
            let run = await CommandRun(["publish", "todo", noop, event])
            #expect(run.code == .usage, "\(run)")
            #expect(run.errors.hasPrefix("reel: event 2 has a base or a guard; give the epoch"), "\(run)")
        }
    }

    @Test("publish sends a request again with its key after a lost answer, and later requests name its epoch")
    func lostAnswer() async throws {
        let node = try LossyNode()
        let events = [String](repeating: noop, count: 501)
        let run = await CommandRun(["publish", "todo", "--url", node.url] + events)
        #expect(run.code == .done && run.output.split(separator: "\n").count == 501, "\(run.errors)")
        let asked = try node.asked
        try #require(asked.count == 3)
        #expect(asked[0].key == asked[1].key && asked[0].body == asked[1].body)
        #expect(asked[2].key != asked[0].key && asked[2].key.hasPrefix("reel-publish-"))
        #expect(!asked[0].body.contains("epoch") && asked[2].body.hasPrefix(#"{"epoch":"00000000000000aa","events":["#))
        let own = own.replacing(#""S""#, with: #""\#(Site.random())""#)
        #expect(await CommandRun(["publish", "todo", "--url", node.url, own]).code == .done)
        #expect(try node.asked.last?.key == "", "events with a site need no key")
    }
}

/// A node that closes the connection of the first request without an answer, and answers later ones.
private final class LossyNode: Sendable {
    struct Asked: Sendable {
        var key: String
        var body: String
    }

    private let loop: EventLoop
    private let server: LoopBound<(HTTPServer, Handler)>
    let url: String

    private final class Handler: HTTPHandler {
        var asked: [Asked] = []

        func respond(to request: HTTPRequest, _ exchange: HTTPExchange) {
            let body = String(decoding: request.body, as: UTF8.self)
            asked.append(Asked(key: request.head.headers["idempotency-key"] ?? "", body: body))
            if asked.count == 1 { return exchange.abort() }
            let acks = (0..<body.ranges(of: "noop").count).map {
                #"{"site":"00000000-0000-8000-8000-000000000001","op":\#($0),"seq":\#($0),"outcome":"applied"}"#
            }
            let answer = #"{"stream":"todo","epoch":"00000000000000aa","acks":[\#(acks.joined(separator: ","))]}"#
            exchange.respond(HTTPResponse(status: 200, body: Array(answer.utf8)))
        }

        func upgrade(_ offer: WebSocketOffer) -> WebSocketDecision { .refuse(HTTPResponse(status: 404)) }
        func refusal(of violation: HTTPViolation) -> HTTPResponse { HTTPResponse(status: violation.status) }
    }

    init() throws {
        let loop = try EventLoop()
        self.loop = loop
        (server, url) = try loop.sync {
            let handler = Handler()
            let server = HTTPServer(on: loop, handler: handler)
            let address = try server.listen(on: try SocketAddress("127.0.0.1", port: 0))
            return (LoopBound((server, handler), on: loop), "http://\(address)")
        }
    }

    deinit {
        loop.stop()
        loop.join()
    }

    var asked: [Asked] { get throws { try loop.sync { [server] in server.value.1.asked } } }
}
