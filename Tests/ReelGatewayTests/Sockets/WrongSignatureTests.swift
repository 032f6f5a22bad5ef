import Foundation
import NodeTestSupport
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import Synchronization
import TestSupport
import Testing

@testable import ReelGateway

/// Tests the limit on tokens with a wrong signature from one address.
@Suite struct WrongSignatureTests {
    private let eve = "203.0.113.7"
    private let ann = "203.0.113.8"

    /// Returns tokens of a known key that carry the signature of another token.
    private func wrong(_ keys: KeyFile, _ count: Int) throws -> [String] {
        let other = try keys.token("other", publish: "*")
        let signature = try #require(other.split(separator: ".").last)
        return try (0..<count).map { number in
            let token = try keys.token("eve\(number)", publish: "*")
            return token.split(separator: ".").dropLast().joined(separator: ".") + "." + signature
        }
    }

    private func origin(_ host: String) throws -> UInt64 { try SocketAddress(host, port: 1).origin }

    private func refusal(_ keys: KeyFile, _ token: String, _ host: String) throws -> ReelError? {
        let origin = try origin(host)
        do throws(ReelError) {
            _ = try keys.gate.grant(token, from: origin)
            return nil
        } catch {
            return error
        }
    }

    @Test("an address that sends wrong signatures is limited, and no other address is")
    func byAddress() throws {
        let keys = try KeyFile()
        let known = try keys.token("bob", publish: "*")
        #expect(try refusal(keys, known, eve) == nil)
        let refusals = try wrong(keys, 400).map { try refusal(keys, $0, eve) }
        #expect(refusals.prefix(100).allSatisfy { $0?.code == .unauthorized })
        let limited = refusals.filter { $0?.code == .rateLimited }
        #expect(!limited.isEmpty && limited.allSatisfy { $0?.retryMs ?? 0 >= 1_000 })

        // The limit allows one more attempt every hundredth of a second, and a valid token may take that attempt.
        let wrong = try wrong(keys, 1)[0]
        let valid = try (0..<20).map { try keys.token("carl\($0)", publish: "*") }
        let met = try valid.map { token in
            for _ in 0..<200 { _ = try refusal(keys, wrong, eve) }
            return try refusal(keys, token, eve)?.code
        }
        #expect(met.contains(.rateLimited), "also a valid token that is new")
        #expect(try refusal(keys, known, eve) == nil, "a token that was verified before takes no time")
        #expect(try refusal(keys, keys.token("carl", publish: "*"), ann) == nil)
        #expect(try refusal(keys, wrong, ann)?.code == .unauthorized)
    }

    @Test("valid tokens are charged nothing, and clients on this machine are not limited")
    func notCharged() throws {
        let keys = try KeyFile()
        for number in 0..<300 {
            #expect(try refusal(keys, keys.token("ann\(number)", publish: "*"), ann) == nil)
        }
        for token in try wrong(keys, 300) { #expect(try refusal(keys, token, "127.0.0.1")?.code == .unauthorized) }
    }

    private func guarded(trusts proxies: String, _ body: (LiveGateway, KeyFile) async throws -> Void) async throws {
        let keys = try KeyFile()
        let ranges = try AddressRanges(parsing: proxies)
        try await LiveGateway.with(MemoryLog(partitions: 1)) {
            $0.node.tokens = keys.gate
            $0.node.trustedProxies = ranges
        } _: { live in
            try await body(live, keys)
        }
    }

    /// Returns the statuses of requests over one connection, each of which has another token.
    private func statuses(
        _ live: LiveGateway,
        before: String = "",
        _ fields: String,
        _ tokens: [String]
    ) throws -> [Int] {
        let client = try RawSocket(live.gateway.address)
        #expect(client.send(before))
        for (index, token) in tokens.enumerated() {
            #expect(
                client.send(
                    "GET /v1/streams/todo/head HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \(token)\r\n\(fields)"
                        + (index == tokens.count - 1 ? "Connection: close\r\n\r\n" : "\r\n")
                )
            )
        }
        return client.receiveAll().components(separatedBy: "HTTP/1.1 ").dropFirst().compactMap { Int($0.prefix(3)) }
    }

    @Test("the address is the one that a trusted proxy names", arguments: [false, true])
    func behindAProxy(speaksPROXY: Bool) async throws {
        try await guarded(trusts: "127.0.0.0/8") { live, keys in
            func statuses(of host: String, _ tokens: [String]) throws -> [Int] {
                speaksPROXY
                    ? try self.statuses(live, before: "PROXY TCP4 \(host) 10.0.0.1 1 2\r\n", "", tokens)
                    : try self.statuses(live, "Forwarded: for=\(host)\r\n", tokens)
            }
            let found = try statuses(of: eve, wrong(keys, 600))
            #expect(found.count == 600 && found.allSatisfy { $0 == 401 || $0 == 429 })
            #expect(found.prefix(100).allSatisfy { $0 == 401 } && found.contains(429))
            #expect(try statuses(of: ann, wrong(keys, 1)) == [401])
            #expect(try statuses(of: ann, [keys.token("ann", publish: "*")]) == [200])
            let limited = try await live.metric(#"reel_limited_total{limit="wrong_signatures"}"#)
            #expect(limited == found.filter { $0 == 429 }.count)
        }
    }

    /// Shows a gate the same wrong token continuously.
    private final class Flood: Sendable {
        private let isOver = Atomic(false)

        init(_ gate: TokenGate, _ token: String, from origin: UInt64) {
            Thread.detachNewThread { [self] in
                while !isOver.load(ordering: .relaxed) { _ = try? gate.grant(token, from: origin) }
            }
        }

        func end() { isOver.store(true, ordering: .relaxed) }
    }

    @Test("a socket of a rate-limited address receives a retry time")
    func limitedAddressRetries() async throws {
        try await guarded(trusts: "127.0.0.0/8") { live, keys in
            let flood = Flood(keys.gate, try wrong(keys, 1)[0], from: try origin(eve))
            var refused: ReelError?
            for number in 0..<100 where refused == nil {
                let socket = try await live.open(["forwarded": "for=\(eve)"])
                socket.send(.hello(.init(client: "test/1", token: try keys.token("bob\(number)", publish: "*"))))
                let frame = try await socket.next { _ in true }
                guard case .error(let failure) = frame.body else { continue }
                refused = failure.error
                #expect(try await socket.closeCode() == 1013)
            }
            flood.end()
            #expect(refused?.code == .rateLimited && refused?.retryMs ?? 0 >= 1_000)
        }
    }

    @Test("`Forwarded` of a stranger is not believed: the address stays its own")
    func stranger() async throws {
        try await guarded(trusts: "10.0.0.0/8") { live, keys in
            let found = try statuses(live, "Forwarded: for=\(eve)\r\n", wrong(keys, 300))
            #expect(found.count == 300 && found.allSatisfy { $0 == 401 }, "the client is on this machine")
        }
    }
}
