import ReelCore
import Testing

@testable import ReelClient

/// The inputs that begin and end each problem.
@Suite struct ProblemListTests {
    private static let (s, t) = (StreamName("s")!, StreamName("t")!)

    /// The inputs that lead to a problem, and the inputs that end it.
    struct Row: Sendable, CustomTestStringConvertible {
        var begin: ProblemList.Input
        var code: ErrorCode
        var stream: String?
        var ends: [ProblemList.Input]

        var testDescription: String { "\(begin)" }
    }

    private static func error(_ code: ErrorCode, retryMs: Int64? = nil) -> ReelError {
        ReelError(code, "why", retryMs: retryMs)
    }

    /// Every input that proves that something works.
    private static let proofs: [ProblemList.Input] =
        [.welcomed, .adopted, .tokenCame] + [s, t].flatMap { proofs(of: $0) }

    private static func proofs(of stream: StreamName) -> [ProblemList.Input] {
        [.live(stream), .stateCame(stream), .acked(stream), .consumed(stream), .emptied(stream)]
    }

    private static let rows: [Row] = [
        Row(begin: .connecting, code: .offline, ends: [.welcomed]),
        Row(begin: .disconnected("reset"), code: .offline, ends: [.welcomed]),
        Row(begin: .formerLog("2 of 3"), code: .nodeBehind, ends: [.welcomed, .adopted]),
        Row(begin: .otherDeployment("a, not b"), code: .wrongDeployment, ends: [.welcomed, .adopted]),
        Row(begin: .entryRefused(error(.unauthorized)), code: .unauthorized, ends: [.welcomed]),
        Row(begin: .entryRefused(error(.forbidden)), code: .forbidden, ends: [.welcomed]),
        Row(begin: .noToken("thrown"), code: .noToken, ends: [.welcomed, .tokenCame]),
        Row(begin: .storeFailed(error(.internal)), code: .internal, ends: []),
        Row(begin: .notSubscribed(s, error(.forbidden)), code: .forbidden, stream: "s", ends: [.live(s)]),
        Row(begin: .notSubscribed(s, error(.limit)), code: .limit, stream: "s", ends: [.live(s)]),
        Row(begin: .notSubscribed(s, error(.newerLog)), code: .newerLog, stream: "s", ends: [.live(s)]),
        Row(begin: .noState(s, error(.nodeBehind)), code: .nodeBehind, stream: "s", ends: [.live(s), .stateCame(s)]),
        Row(
            begin: .nacked(s, error(.logUnavailable, retryMs: 1_000)),
            code: .logUnavailable,
            stream: "s",
            ends: [.acked(s), .emptied(s)]
        ),
        Row(
            begin: .nacked(s, error(.rateLimited, retryMs: 10)),
            code: .rateLimited,
            stream: "s",
            ends: [.acked(s), .emptied(s)]
        ),
        Row(
            begin: .unanswered(s, sinceMs: 0),
            code: .logUnavailable,
            stream: "s",
            ends: [.acked(s), .emptied(s)]
        ),
        Row(begin: .held(s, error(.forbidden)), code: .forbidden, stream: "s", ends: [.acked(s), .emptied(s)]),
        Row(begin: .held(s, error(.unauthorized)), code: .unauthorized, stream: "s", ends: [.acked(s), .emptied(s)]),
        // The log has the events, and the fold does not accept them.
        Row(
            begin: .held(s, error(.tooManySites)),
            code: .tooManySites,
            stream: "s",
            ends: [.consumed(s), .emptied(s)]
        ),
        Row(begin: .held(s, error(.foreign)), code: .foreign, stream: "s", ends: [.consumed(s), .emptied(s)]),
    ]

    @Test("each input begins its problem, and only its own proofs end it", arguments: rows)
    func row(_ row: Row) {
        var list = ProblemList()
        let change1 = list.apply(row.begin, nowMs: 100)
        #expect(change1)
        let seen = list.seen()
        #expect(seen.map(\.code) == [row.code] && seen.map(\.stream) == [row.stream])
        for proof in Self.proofs {
            var after = list
            let ends = row.ends.contains(proof)
            let change2 = after.apply(proof, nowMs: 200)
            #expect(change2 == ends, "\(proof)")
            #expect(after.seen().isEmpty == ends, "\(proof)")
        }
    }

    @Test("a problem keeps its age while its code stays the same, even if the message changes")
    func ages() {
        var list = ProblemList()
        let change3 = list.apply(.connecting, nowMs: 0)
        #expect(change3)
        let change4 = list.apply(.connecting, nowMs: 10)
        #expect(!change4)
        let change5 = list.apply(.disconnected("reset"), nowMs: 20)
        #expect(change5)
        let change6 = list.apply(.disconnected("reset"), nowMs: 30)
        #expect(!change6)
        let change7 = list.apply(.connecting, nowMs: 40)
        #expect(!change7)
        let seen = list.seen()
        #expect(seen == [SyncProblem(code: .offline, stream: nil, message: "reset", sinceMs: 0)])
        // Another code begins another problem.
        _ = list.apply(.nacked(Self.s, Self.error(.logUnavailable, retryMs: 0)), nowMs: 100)
        _ = list.apply(.held(Self.s, Self.error(.forbidden)), nowMs: 900)
        #expect(list.seen().last?.sinceMs == 900)
    }

    @Test("an unanswered publish has the age of the publish, and replaces no other problem")
    func unanswered() {
        var list = ProblemList()
        _ = list.apply(.unanswered(Self.s, sinceMs: 1_000), nowMs: 6_000)
        #expect(list.seen().map(\.sinceMs) == [1_000])
        _ = list.apply(.held(Self.t, Self.error(.forbidden)), nowMs: 6_000)
        let isNews = list.apply(.unanswered(Self.t, sinceMs: 1_000), nowMs: 7_000)
        #expect(!isNews)
        #expect(list.seen().map(\.code) == [.logUnavailable, .forbidden])
    }

    @Test("a nack is no problem of its stream if the event itself caused it, or if it follows another nack")
    func nacks() {
        var list = ProblemList()
        let change8 = list.apply(.nacked(Self.s, Self.error(.badEvent)), nowMs: 0)
        #expect(!change8)
        let change9 = list.apply(.nacked(Self.s, Self.error(.gap, retryMs: 0)), nowMs: 0)
        #expect(!change9)
        _ = list.apply(.nacked(Self.s, Self.error(.overloaded, retryMs: 0)), nowMs: 0)
        let change10 = list.apply(.nacked(Self.s, Self.error(.gap, retryMs: 0)), nowMs: 0)
        #expect(!change10)
        #expect(list.seen().map(\.code) == [.overloaded])
    }

    @Test("the problems of the client come first, then the problems of the streams in the order of their names")
    func order() {
        var list = ProblemList()
        for stream in [Self.t, Self.s] {
            _ = list.apply(.held(stream, Self.error(.tooManySites)), nowMs: 0)
            _ = list.apply(.notSubscribed(stream, Self.error(.forbidden)), nowMs: 0)
        }
        _ = list.apply(.connecting, nowMs: 0)
        _ = list.apply(.storeFailed(Self.error(.internal)), nowMs: 0)
        let seen = list.seen()
        #expect(seen.map(\.code) == [.internal, .offline, .forbidden, .tooManySites, .forbidden, .tooManySites])
        #expect(seen.map(\.stream) == [nil, nil, "s", "s", "t", "t"])
    }
}
