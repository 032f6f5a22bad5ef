import Foundation
import ReelCore
import TestSupport
import Testing

@Suite struct CanonicalNumberTests {
    /// Returns the canonical form of a JSON text.
    private func canonical(_ text: String) throws -> String {
        var output: [UInt8] = []
        try Array(text.utf8).withUnsafeBytes { try CanonicalJSON.canonicalize($0, into: &output) }
        return String(decoding: output, as: UTF8.self)
    }

    @Test(
        "the samples of RFC 8785 are printed as it prints them",
        arguments: [
            (0x0000_0000_0000_0000, "0"), (0x8000_0000_0000_0000, "0"), (0x0000_0000_0000_0001, "5e-324"),
            (0x8000_0000_0000_0001, "-5e-324"), (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"), (0x4340_0000_0000_0000, "9007199254740992"),
            (0xc340_0000_0000_0000, "-9007199254740992"), (0x4430_0000_0000_0000, "295147905179352830000"),
            (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"), (0x44b5_2d02_c7e1_4af6, "1e+23"),
            (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"), (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
            (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"), (0x444b_1ae4_d6e2_ef50, "1e+21"),
            (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"), (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
            (0x41b3_de43_5555_5553, "333333333.3333332"), (0x41b3_de43_5555_5554, "333333333.33333325"),
            (0x41b3_de43_5555_5555, "333333333.3333333"), (0x41b3_de43_5555_5556, "333333333.3333334"),
            (0x41b3_de43_5555_5557, "333333333.33333343"), (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
            (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
        ] as [(UInt64, String)]
    )
    func samples(_ bits: UInt64, _ text: String) throws {
        let value = Double(bitPattern: bits)
        #expect(try canonical(String(format: "%.17e", value)) == text)
        #expect(try canonical(text) == text)
    }

    @Test("every double is printed as its shortest name") func everyDoubleIsPrinted() throws {
        var random = SeededNumbers(TestSeed.value)
        for round in 0..<2_000 * effort {
            var value = Double(bitPattern: random.next())
            if round % 2 == 0 { value = Double(Int64.random(in: -(1 << 60)...1 << 60, using: &random)) / 1024 }
            guard value.isFinite, value != 0 else { continue }
            let text = try canonical(String(format: "%.17e", value))
            let digits = text.prefix { $0 != "e" }.filter(\.isNumber).drop { $0 == "0" }
            let significant = text.contains(".") ? digits.count : digits.trimmingSuffix { $0 == "0" }.count
            // The text is the shortest if the nearest number with one digit less is another double.
            let isShortest =
                significant == 1 || Double(String(format: "%.\(significant - 2)e", value)) != value
            let isPlain = abs(value) >= 1e-6 && abs(value) < 1e21
            let isStable = try canonical(text) == text
            try Array(text.utf8).withUnsafeBytes { try CanonicalJSON.check($0) }
            #expect(
                Double(text) == value && isShortest && isStable && text.contains("e") != isPlain,
                "\(text) REEL_SEED=\(TestSeed.value)"
            )
        }
    }

    @Test(
        "an integer that a double would change is refused, unless it is how the double is printed",
        arguments: [
            ("9007199254740991", "9007199254740991"), ("9007199254740992", "9007199254740992"),
            ("9007199254740993", nil), ("-9007199254740993", nil), ("9007199254740994", "9007199254740994"),
            ("123456789012345680000", "123456789012345680000"), ("123456789012345683968", "123456789012345680000"),
            ("123456789012345683969", nil), ("1000000000000000000000", "1e+21"), ("1000000000000000000001", nil),
            ("-0", "0"), ("-0.0", "0"), ("1.0", "1"), ("1e2", "100"), ("10E-1", "1"), ("0.10", "0.1"),
            ("9007199254740993.0", "9007199254740992"), ("1e999", nil), ("-1e999", nil), ("1e-999", "0"),
            ("1" + String(repeating: "0", count: 308), nil), ("1" + String(repeating: "0", count: 309), nil),
        ] as [(String, String?)]
    )
    func integers(_ literal: String, _ expected: String?) throws {
        if let expected {
            #expect(try canonical(literal) == expected)
        } else {
            let error = #expect(throws: ReelError.self) { try canonical(literal) }
            #expect(error?.code == .badNumber)
        }
    }
}

extension Substring {
    fileprivate func trimmingSuffix(_ isTrimmed: (Character) -> Bool) -> Substring {
        var result = self
        while let last = result.last, isTrimmed(last) { result.removeLast() }
        return result
    }
}
