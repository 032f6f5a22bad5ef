import ReelCore
import TestSupport
import Testing

@Suite struct EventIntakeTests {
    static let site = "6f1c0f0e-8d3b-4a6e-9c55-0123456789ab"

    private func take(_ sent: String, by: String? = "ann", limit: Int = 1 << 18) throws -> String {
        var intake = EventIntake(limit: limit)
        var output = Array("before".utf8)
        let stamp = EventIntake.Stamp(by: by, atMs: 7, base: 41)
        do {
            try Array(sent.utf8).withUnsafeBytes { try intake.take($0, stamp: stamp, into: &output) }
        } catch {
            #expect(output == Array("before".utf8))
            throw error
        }
        return String(decoding: output.dropFirst(6), as: UTF8.self)
    }

    @Test("makes an event canonical and stamps it") func makesAnEventCanonical() throws {
        let sent = """
             { "type" : "update", "site":"\(Self.site)", "op":3, "model":"m", "id":"\\u0061",
               "fields": {"b": 1.50, "a": "\\u00e4\\/"} }
            """
        #expect(
            try take(sent) == """
                {"at":7,"base":41,"by":"ann","fields":{"a":"ä/","b":1.5},"id":"a","model":"m","op":3,\
                "site":"\(Self.site)","type":"update"}
                """
        )
    }

    @Test(
        "a base and a guard on a seq name seqs of one epoch, a guard of −1 does not",
        arguments: [("", false), (#""if":{"a":-1},"#, false), (#""if":{"a":-1,"b":0},"#, true), (#""base":3,"#, true)]
    )
    func namesSeqs(_ members: String, _ expected: Bool) throws {
        let change = #""id":"1","model":"m","op":0,"site":"\#(Self.site)","type":"update"}"#
        let base = members.hasPrefix(#""base"#)
        for sent in ["{" + members + change, "{ " + members + change, base ? "" : #"{"fields":{},"# + members + change]
        {
            if sent.isEmpty { continue }
            var (intake, output) = (EventIntake(limit: 1 << 18), [UInt8]())
            try Array(sent.utf8).withUnsafeBytes {
                try intake.take($0, stamp: .init(by: nil, atMs: 7, base: 41), into: &output)
            }
            #expect(intake.namesSeqs == expected, "\(sent)")
        }
    }

    @Test("keeps the base that the client gave") func keepsTheBaseThat() throws {
        let noop = #"{"base":-1,"op":0,"site":"\#(Self.site)","type":"noop"}"#
        #expect(try take(noop, by: nil) == #"{"at":7,"base":-1,"op":0,"site":"\#(Self.site)","type":"noop"}"#)
    }

    @Test(
        "an error of the event intake names the member that caused it",
        arguments: [
            (#"{"type":"insert"}"#, #"found no member "model""#),
            (#"{"type":"frob"}"#, #"found "frob", expected insert, update, delete, batch or noop, in type"#),
            (#"{"type":"insert","id":5}"#, "found '5' where a string was expected, in id"),
            (#"{"fields":{"a \"b":[1]},"ops":{"n":{"inc":"x"}},"type":"update"}"#, ", in ops.n.inc"),
            (
                #"{"events":[{"id":"1","model":"m","type":"insert"},{"id":"1","model":7,"type":"insert"}]}"#,
                ", in events[1].model"
            ),
        ]
    )
    func namesTheMember(_ sent: String, _ says: String) {
        let whole = #"{"op":0,"site":"\#(Self.site)","# + sent.dropFirst()
        let error = #expect(throws: ReelError.self) { try take(whole) }
        #expect(error?.message.hasSuffix(says) == true, "\(error?.message ?? "")")
    }

    @Test(
        "refuses what only the log gives, and what is too large or no event",
        arguments: [
            (#"{"at":1,"op":0,"site":"SITE","type":"noop"}"#, ErrorCode.badEvent),
            (#"{"by":"x","op":0,"site":"SITE","type":"noop"}"#, .badEvent),
            (#"{"seq":1,"op":0,"site":"SITE","type":"noop"}"#, .badEvent),
            (#"{"base":{},"op":0,"site":"SITE","type":"noop"}"#, .badEvent),
            (#"{"Last":true,"base":5,"op":0,"site":"SITE","type":"noop"}"#, .badEvent),
            (#" {"base":5,"action":1,"op":0,"site":"SITE","type":"noop"}"#, .badEvent),
            (#"{}"#, .badEvent), (#"[]"#, .badEvent), (#"{"a":1,"a":2}"#, .badJSON), (#"{"a":"\ud800"}"#, .badJSON),
            (#"{"a":1e999}"#, .badNumber), (#"{"a":9007199254740993}"#, .badNumber), ("", .badJSON),
        ]
    )
    func refuses(_ sent: String, _ code: ErrorCode) {
        let sent = sent.split(separator: "SITE", omittingEmptySubsequences: false).joined(separator: Self.site)
        let error = #expect(throws: ReelError.self) { try take(sent) }
        #expect(error?.code == code)
    }

    /// Compares the fast path with the slow path. An event with a space before it is not canonical, so it takes the
    /// slow path.
    @Test("the short way takes what the long way takes") func theShortWayTakes() throws {
        var random = SeededNumbers(TestSeed.value)
        let heads = [
            "", #""base":5,"#, #""base":-1,"#, #""at":1,"#, #""by":"x","#, #""base":5,"by":"x","#, #""b\u0079":"x","#,
            ",",
        ]
        let tails = ["", "", "", #","seq":1"#, #","zz":1"#, " ", "}", #","type":"noop""#, ","]
        var taken = 0
        for _ in 0..<2_000 * effort {
            let head = heads.randomElement(using: &random) ?? ""
            let tail = tails.randomElement(using: &random) ?? ""
            var fields: [UInt8] = []
            try Array(RandomJSON.object(levels: 2, &random).written(&random).utf8)
                .withUnsafeBytes { try CanonicalJSON.canonicalize($0, into: &fields) }
            var sent = Array((#"{\#(head)"fields":"#).utf8) + fields
            sent += Array(#","id":"i","model":"m","op":3,"site":"\#(Self.site)","type":"insert"\#(tail)}"#.utf8)
            if Int.random(in: 0..<4, using: &random) == 0 {
                let place = Int.random(in: 0..<sent.count, using: &random)
                let other = sent.randomElement(using: &random) ?? 0
                sent.replaceSubrange(
                    place..<place + Int.random(in: 0...1, using: &random),
                    with: [other].prefix(place % 2)
                )
            }
            let text = String(decoding: sent, as: UTF8.self)
            let by = Bool.random(using: &random) ? "ann" : nil
            let (short, long) = (try? take(text, by: by), try? take(" " + text, by: by))
            #expect(short == long, "REEL_SEED=\(TestSeed.value): \(text)")
            if short != nil { taken += 1 }
        }
        #expect(taken > 0)
    }

    @Test("counts its limit on the stamped bytes") func countsItsLimitOn() throws {
        let noop = #"{"op":0,"site":"\#(Self.site)","type":"noop"}"#
        let count = try take(noop).utf8.count
        _ = try take(noop, limit: count)
        let error = #expect(throws: ReelError.self) { try take(noop, limit: count - 1) }
        #expect(error?.code == .tooLarge)
    }

    @Test("knows the author of a bad event") func knowsTheAuthorOf() throws {
        let bad = Array(#"{"type":"what","op":4,"site":"\#(Self.site)"}"#.utf8)
        let author = try #require(bad.withUnsafeBytes { EventIntake.author(of: $0) })
        #expect(author.op == 4 && author.site.description == Self.site)
        #expect(Array("{}".utf8).withUnsafeBytes { EventIntake.author(of: $0) } == nil)
    }
}
