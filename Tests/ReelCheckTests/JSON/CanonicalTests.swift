import TestSupport
import Testing

@testable import ReelCheck

@Suite struct CanonicalTests {
    /// The first text of each pair is read as a double; the second is the expected print.
    @Test(
        "Numbers are printed as ECMAScript prints them",
        arguments: [
            ("0", "0"), ("-0", "0"), ("1", "1"), ("-1.5", "-1.5"), ("1e20", "100000000000000000000"), ("1e21", "1e+21"),
            ("123456789012345683968", "123456789012345680000"), ("0.000001", "0.000001"), ("1e-7", "1e-7"),
            ("0.1", "0.1"),
            ("5e-324", "5e-324"), ("-5e-324", "-5e-324"), ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("9007199254740993", "9007199254740992"), ("295147905179352825856", "295147905179352830000"),
            ("9.999999999999997e22", "9.999999999999997e+22"), ("1e23", "1e+23"),
            ("999999999999999700000", "999999999999999700000"), ("333333333.3333332", "333333333.3333332"),
            ("333333333.33333325", "333333333.33333325"), ("-0.0000033333333333333333", "-0.0000033333333333333333"),
            ("1424953923781206.2", "1424953923781206.2"),
            // Powers of two. For the first one, the nearest decimal with 16 digits reads back as another double, but
            // the next decimal with 16 digits is correct.
            ("0x1p-44", "5.684341886080802e-14"), ("0x1p-1022", "2.2250738585072014e-308"),
            ("0x1p89", "6.189700196426902e+26"),
        ]
    )
    func numbersArePrintedAsECMAScriptPrintsThem(number: String, printed: String) throws {
        #expect(ecmaScript(try #require(Double(number))) == printed)
    }

    @Test("Any double reads back from its print, and no shorter print does") func anyDoubleReadsBackFromItsPrint() {
        var random = SeededNumbers(TestSeed.given(or: 11))
        for _ in 0..<2_000 * effort {
            let number = Double(bitPattern: random.next())
            guard number.isFinite else { continue }
            let printed = ecmaScript(number)
            #expect(Double(printed) == number)
            // Swift's own shortest digits are an independent implementation, so both must be equal.
            #expect(digits(printed) == digits(number.description), "\(number)")
        }
    }

    private func digits(_ number: String) -> String {
        let mantissa = number.prefix { $0 != "e" }.filter(\.isNumber).drop { $0 == "0" }
        return String(mantissa.reversed().drop { $0 == "0" }.reversed())
    }

    @Test(
        "Values are brought into canonical form or refused",
        arguments: [
            (#" { "b" : [ 1.0 , 2e0 ] , "a" : "\u00e9\/\u001F" } "#, "{\"a\":\"é/\\u001f\",\"b\":[1,2]}"),
            (
                #"{"\ud83d\ude00":1,"\ufb33":2,"\u20ac":3,"\r":4,"1":5,"\u0080":6,"ö":7}"#,
                "{\"\\r\":4,\"1\":5,\"\u{80}\":6,\"ö\":7,\"€\":3,\"😀\":1,\"\u{fb33}\":2}"
            ),
            (#"[-0,1E400e]"#, nil), (#"["\ud800"]"#, nil), (#"["\udc00\ud800"]"#, nil),
            (#"{"a":1,"\u0061":2}"#, nil), ("[01]", nil), ("[1.]", nil), ("[+1]", nil), ("[.5]", nil), ("", nil),
            ("[1,]", nil), ("{\"a\":1,}", nil), ("\"\u{1}\"", nil), ("\"\\x\"", nil), ("nul", nil), ("1 2", nil),
            ("[[[[[1]]]]]", nil), ("[[[[1]]]]", "[[[[1]]]]"), ("\"\u{7f}\u{2028}\"", "\"\u{7f}\u{2028}\""),
        ] as [(String, String?)]
    )
    func valuesAreBroughtIntoCanonicalFormOr(text: String, canonical: String?) {
        let printed = try? JSON(reading: Array(text.utf8), depth: 4).canonical
        #expect(printed == canonical.map { Array($0.utf8) })
    }

    @Test("A number beyond a double has no canonical form", arguments: ["[1e999]", "[-1e999]", "[Infinity]"])
    func aNumberBeyondADoubleHasNo(text: String) {
        #expect(throws: Fault.self) { try JSON(canonical: Array(text.utf8), depth: 4) }
    }

    @Test("Bytes that are not UTF-8 are refused") func bytesThatAreNotUTF8Are() {
        for bytes: [UInt8] in [[0x22, 0xFF, 0x22], [0x22, 0xC0, 0x80, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22]] {
            #expect(throws: Fault.self) { try JSON(reading: bytes, depth: 4) }
        }
    }

    @Test(
        "Keys are hashed as the Java client hashes them",
        arguments: [
            ("21", -973_932_308), ("foobar", -790_332_482), ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971), ("abc", 479_470_107),
        ] as [(String, Int32)]
    )
    func keysAreHashedAsTheJavaClient(key: String, hash: Int32) {
        #expect(Int32(bitPattern: murmur2(Array(key.utf8))) == hash)
    }

    @Test("FNV and the finalizer give the published values") func fnvAndTheFinalizerGiveThePublished() {
        #expect(fnv1a(Array("foobar".utf8)) == 0x8594_4171_f739_67e8)
        #expect(fnv1a([]) == 0xcbf2_9ce4_8422_2325)
        #expect(finalized(1) == 0xb456_bcfc_34c2_cb2c)
    }
}
