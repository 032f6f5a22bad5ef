import EventLogConformance
import Foundation
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import TestSupport
import Testing

@testable import ReelGateway

/// Tests that no part of a token appears in the log lines, wherever the token came from and whatever its fault was.
@Suite(.timeLimit(.minutes(15))) struct TokenJournalTests {
    /// Returns all pieces of the tokens, of at least twelve bytes, that appear in the lines.
    private func leaks(of tokens: [String], in lines: [String]) -> [String] {
        let length = 12
        func pieces(_ text: String) -> Set<ArraySlice<UInt8>> {
            let bytes = Array(text.utf8)
            guard bytes.count >= length else { return [] }
            return Set((0...bytes.count - length).map { bytes[$0..<$0 + length] })
        }
        let secret = tokens.reduce(into: Set<ArraySlice<UInt8>>()) { $0.formUnion(pieces($1)) }
        return lines.filter { !pieces($0).isDisjoint(with: secret) }
    }

    @Test("a piece of a token is found") func aPieceOfA() throws {
        let token = try KeyFile().token(publish: "*")
        for start in [0, 30, token.count - 12] {
            let line = "level=info event=x detail=\"\(token.dropFirst(start).prefix(12))\"\n"
            #expect(leaks(of: [token], in: ["level=info event=y\n", line]) == [line])
        }
        #expect(leaks(of: [token], in: ["detail=\(token.prefix(11))"]).isEmpty)
    }

    @Test("no log line contains a token") func logsNoToken() async throws {
        let keys = try KeyFile()
        let good = try keys.token(publish: "*")
        let parts = good.split(separator: ".").map(String.init)
        let refused: [String] = [
            try keys.token(publish: "*", expiresIn: -100),
            try KeyFile().token(publish: "*"),
            "\(parts[0]).\(parts[1]).\(String(parts[2].reversed()))",
            "\(parts[0]).\(parts[1])",
            "\(good)=",
            "\(UUID().uuidString).\(UUID().uuidString)",
            String(repeating: UUID().uuidString, count: 250),
            "\(UUID().uuidString) \" = \\ \(UUID().uuidString)",
        ]
        let weak = try keys.token("bob", read: "other", publish: "other")
        let tokens = [good, weak] + refused
        // The listed snapshot node does not exist, so every forwarded question about state fails.
        let log = NeighbourLog(try MemoryLog(), role: "snapshot")
        try await LiveGateway.with(log) {
            $0.node.tokens = keys.gate
            $0.node.announceMs = 20
            ($0.peerMs, $0.peerHeadMs) = (500, 500)
        } _: { live in
            try await eventually("the snapshot node is known") {
                live.gateway.announcer.nodes.contains { $0.role == "snapshot" }
            }
            for token in tokens {
                try await overHTTP(live, token)
                try await overASocket(live, token, good: good)
            }
            #expect(live.journalLines.contains { $0.contains("event=listening") })
            let found = leaks(of: tokens, in: live.journalLines)
            #expect(found.isEmpty, "\(found.joined())")
        }
    }

    /// Sends the token in the header of every kind of request, in a query, in a path, and in a body.
    private func overHTTP(_ live: LiveGateway, _ token: String) async throws {
        let bearer: HTTPHeaders = ["authorization": "Bearer \(token)"]
        let path = "/v1/streams/todo-7"
        let query = token.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
        for target in [
            "\(path)/head", "\(path)/events", "\(path)/snapshot", "\(path)/objects/a/b", "/v1/cluster", "/v1/socket",
            "\(path)/events?access_token=\(query)", "\(path)/events?epoch=\(query)", "/\(query)",
        ] {
            // A request that is too long may end with the connection.
            _ = try? await live.ask("GET", target, headers: bearer)
        }
        _ = try? await live.ask("GET", "\(path)/head", headers: ["authorization": "Basic \(token)"])
        _ = try? await live.ask("GET", "\(path)/head", headers: ["authorization": token])
        _ = try? await live.ask("POST", "\(path)/events", body: #"{"events":["\#(query)"]}"#, headers: bearer)
        for target in ["\(path)/events", "\(path)/events?token=\(query)"] {
            var headers = bearer
            headers.add("accept", "text/event-stream")
            headers.add("last-event-id", token)
            let reader = try live.reader(target, headers)
            try await eventually("an answer") { reader.head != nil || reader.failure != nil }
        }
    }

    /// Sends the token in the handshake, in `hello`, in `renew`, and in frames that take no token.
    private func overASocket(_ live: LiveGateway, _ token: String, good: String) async throws {
        _ = try? await live.open(["authorization": "Bearer \(token)"])
        let entering = try await live.open()
        entering.send(.hello(.init(client: "test/1", token: token)))
        _ = try await entering.nextAnswer()
        let inside = try await live.open()
        inside.send(.hello(.init(client: "test/1", token: good)))
        _ = try await inside.next { if case .welcome = $0.body { true } else { false } }
        inside.send(.renew(token: token), ref: "1")
        _ = try await inside.next { $0.ref == Array("1".utf8) }
        let text = token.filter { $0 != "\"" && $0 != "\\" }
        for frame in [#"{"t":"subscribe","stream":"\#(text)","after":-1}"#, #"{"t":"\#(text)"}"#] {
            inside.send(frame)
            _ = try await inside.nextAnswer()
        }
    }
}

extension TestSocket {
    /// Returns the next answer to a token or a frame.
    fileprivate func nextAnswer() async throws -> ServerFrame {
        try await next { frame in
            switch frame.body {
            case .welcome, .subscribed, .error: true
            default: false
            }
        }
    }
}
