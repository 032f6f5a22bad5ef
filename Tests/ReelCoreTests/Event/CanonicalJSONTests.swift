import Foundation
import ReelCore
import TestSupport
import Testing

@Suite struct CanonicalJSONTests {
    private func canonical(_ text: [UInt8]) throws -> [UInt8] {
        var output: [UInt8] = []
        try text.withUnsafeBytes { try CanonicalJSON.canonicalize($0, into: &output) }
        return output
    }

    private func isCanonical(_ text: [UInt8]) -> Bool {
        (try? text.withUnsafeBytes { try CanonicalJSON.check($0) }) != nil
    }

    @Test(
        "a value becomes its canonical form",
        arguments: [
            (#" { "b" : [ 1 , 2.50 , true ] , "a" : null } "#, #"{"a":null,"b":[1,2.5,true]}"#),
            (#""\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/""#, #""€$\u000f\nA'B\"\\\\\"/""#),
            (#""\ud83d\ude02\u007f""#, "\"\u{1F602}\u{7f}\""), (#""\b\t\n\f\r\u0008""#, #""\b\t\n\f\r\b""#),
            // The sample of RFC 8785 for the order of members: they are sorted by UTF-16 code units.
            (
                #"{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}"#,
                "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"ö\":7,\"€\":1,\"\u{1F600}\":5,\"\u{fb33}\":3}"
            ),
            ("{}", "{}"), ("[]", "[]"), ("[[],{}]", "[[],{}]"), (#"{"":0}"#, #"{"":0}"#),
            (#"{"aa":1,"a":2,"a\"":3}"#, #"{"a":2,"a\"":3,"aa":1}"#),
        ]
    )
    func becomes(_ text: String, _ expected: String) throws {
        #expect(String(decoding: try canonical(Array(text.utf8)), as: UTF8.self) == expected)
        #expect(isCanonical(Array(expected.utf8)))
    }

    @Test(
        "the canonical JSON check rejects a text that is not in canonical form",
        arguments: [
            "", " 1", "1 ", "01", "-0", "1.0", "1e2", "1E+21", "1e21", "0.0000001", "+1", ".5", "5.", "-", "1e", "NaN",
            "0.10", "100000000000000000000.0", "1000000000000000000000", "9007199254740993", "1e-6", "1e+400", "tru",
            "nul",
            #""\u0041""#, #""\/""#, #""\u000a""#, #""\u000F""#, #""\u001"#, #""\x""#, "\"\n\"", "\"", #""\""#, #""a"#,
            "[1,]",
            "[,1]", "[1 ,2]", "{,}", #"{"a":1,}"#, #"{"a" :1}"#, #"{"b":1,"a":2}"#, #"{"a":1,"a":2}"#, #"{"a"}"#,
            "{1:2}",
            "[1}", "[", "{", #"{"a":"#, "{\"\u{fb33}\":3,\"\u{1F600}\":5}", "1 2", "\u{feff}1",
        ]
    )
    func rejectsNonCanonicalText(_ text: String) {
        #expect(!isCanonical(Array(text.utf8)))
    }

    @Test(
        "bytes that are no UTF-8 are refused, canonical or not",
        arguments: [
            [0x80], [0xc3], [0xc0, 0x80], [0xc1, 0xbf], [0xe0, 0x80, 0x80], [0xe0, 0x9f, 0xbf], [0xed, 0xa0, 0x80],
            [0xed, 0xbf, 0xbf], [0xf0, 0x80, 0x80, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xf5, 0x80, 0x80, 0x80],
            [0xe2, 0x82], [0xf0, 0x9f, 0x98], [0xff], [0x00],
        ] as [[UInt8]]
    )
    func badUTF8(_ bytes: [UInt8]) {
        for padding in [[], Array("0123456789".utf8)] {
            let text = [0x22] + padding + bytes + padding + [0x22]
            #expect(!isCanonical(text))
            let error = #expect(throws: ReelError.self) { try canonical(text) }
            #expect(error?.code == .badJSON)
        }
    }

    @Test(
        "integers are written in decimal",
        arguments: [0, 1, 9, 10, 11, 99, 100, 4_096, Int64.max, -1, -9, -10, Int64.min]
    )
    func integersAreWrittenIn(_ integer: Int64) {
        var bytes: [UInt8] = []
        bytes.append(integer: integer)
        bytes.append(integer: UInt64(bitPattern: integer))
        #expect(String(decoding: bytes, as: UTF8.self) == "\(integer)\(UInt64(bitPattern: integer))")
    }

    @Test("a byte that a text may not hold is found at each place") func aByteThatA() {
        for size in 1...18 {
            for place in 1...size {
                for byte in UInt8.min ... .max {
                    var text = [UInt8](repeating: 0x61, count: size + 2)
                    (text[0], text[size + 1]) = (0x22, 0x22)
                    text[place] = byte
                    let isPlain = (0x20..<0x80).contains(byte) && byte != 0x22 && byte != 0x5c
                    // A backslash before a letter `a` or before the closing quote is not valid text either.
                    guard isCanonical(text) == isPlain, ((try? canonical(text)) != nil) == isPlain else {
                        Issue.record("byte \(byte) at \(place) of \(size)")
                        return
                    }
                }
            }
        }
    }

    @Test("any value written in any way has one form") func anyValueWrittenIn() throws {
        var random = SeededNumbers(TestSeed.value)
        for _ in 0..<400 * effort {
            let value = RandomJSON.value(levels: 4, &random)
            let first = try canonical(Array(value.written(&random).utf8))
            #expect(isCanonical(first), "REEL_SEED=\(TestSeed.value)")
            #expect(try canonical(first) == first)
            #expect(try canonical(Array(value.written(&random).utf8)) == first, "REEL_SEED=\(TestSeed.value)")
            // Foundation drops a byte order mark at the start of a text, unless it is escaped.
            guard !String(decoding: first, as: UTF8.self).unicodeScalars.contains("\u{feff}") else { continue }
            // An independent JSON reader must find the same value in the canonical form.
            let plain = try JSONSerialization.jsonObject(with: Data(first), options: .fragmentsAllowed)
            let other = try JSONSerialization.jsonObject(
                with: Data(value.written(&random).utf8),
                options: .fragmentsAllowed
            )
            #expect((plain as? NSObject) == (other as? NSObject), "REEL_SEED=\(TestSeed.value)")
        }
    }

    @Test("depth is counted in objects and arrays") func depthIsCountedIn() throws {
        let deep = Array(#"[{"a":[1]}]"#.utf8)
        try deep.withUnsafeBytes { try CanonicalJSON.check($0, levels: 3) }
        #expect(throws: ReelError.self) { try deep.withUnsafeBytes { try CanonicalJSON.check($0, levels: 2) } }
        var output: [UInt8] = []
        #expect(throws: ReelError.self) {
            try deep.withUnsafeBytes { try CanonicalJSON.canonicalize($0, levels: 2, into: &output) }
        }
    }

    @Test("texts are compared by their decoded bytes") func textsAreComparedBy() {
        func order(_ a: String, _ b: String) -> Int {
            Array(a.utf8).withUnsafeBytes { a in
                Array(b.utf8).withUnsafeBytes { b in JSONText(a).order(JSONText(b)).signum() }
            }
        }
        #expect(order("a", "b") == -1 && order("b", "a") == 1 && order("a", "a") == 0 && order("a", "ab") == -1)
        #expect(order(#"\""#, "a") == -1)
        #expect(order(#"\""#, "!") == 1)
        #expect(order(#"\n"#, #"\u000b"#) == -1)
        #expect(order("\u{fb33}", "\u{1F600}") == -1)
        #expect(order("é", "e\u{301}") == 1)
    }

    @Test("a text knows its scalars") func aTextKnowsIts() {
        func text<R>(_ raw: String, _ body: (JSONText) -> R) -> R {
            Array(raw.utf8).withUnsafeBytes { body(JSONText($0)) }
        }
        #expect(text(#"a\"ö\n\u001f\\😂"#) { $0.scalarCount } == 7)
        #expect(text("aö€😂") { $0.scalarCount } == 4)
        #expect(text(#"a\"ö\n\u001f\\😂"#) { $0.string } == "a\"ö\n\u{1f}\\😂")
        #expect(text(#"\ud83d\ude02\u00e9\u20ac\/"#) { $0.string } == "😂é€/")
    }
}
