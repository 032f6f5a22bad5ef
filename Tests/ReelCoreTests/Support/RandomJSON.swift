import TestSupport

/// A random JSON value that can be written in many ways.
indirect enum RandomJSON {
    case word(String)
    case number(Double)
    case text([Unicode.Scalar])
    case array([RandomJSON])
    case object([(name: [Unicode.Scalar], value: RandomJSON)])

    static func value(levels: Int, _ random: inout SeededNumbers) -> RandomJSON {
        switch Int.random(in: 0..<(levels > 0 ? 6 : 3), using: &random) {
        case 0: .word(["true", "false", "null"].randomElement(using: &random) ?? "null")
        case 1: .number(Double(Int.random(in: -99_999...99_999, using: &random)) / 64)
        case 2: .text(text(&random))
        case 3: .array((0..<Int.random(in: 0...4, using: &random)).map { _ in value(levels: levels - 1, &random) })
        default: object(levels: levels - 1, &random)
        }
    }

    static func object(levels: Int, _ random: inout SeededNumbers) -> RandomJSON {
        var members: [(name: [Unicode.Scalar], value: RandomJSON)] = []
        for _ in 0..<Int.random(in: 0...5, using: &random) {
            let name = text(&random)
            if !members.contains(where: { $0.name == name }) {
                members.append((name, value(levels: levels, &random)))
            }
        }
        return .object(members)
    }

    /// Returns random scalars from ranges in which encodings and sort orders differ.
    static func text(_ random: inout SeededNumbers) -> [Unicode.Scalar] {
        let ranges: [ClosedRange<UInt32>] = [
            0x61...0x63, 0x20...0x7f, 0x00...0x1f, 0x22...0x22, 0x5c...0x5c, 0x80...0x7ff, 0xd000...0xd7ff,
            0xe000...0xffff, 0x10000...0x10ffff,
        ]
        return (0..<Int.random(in: 0...9, using: &random)).compactMap { _ in
            ranges.randomElement(using: &random).map { UInt32.random(in: $0, using: &random) }
                .flatMap(Unicode.Scalar.init)
        }
    }

    /// Returns the value in one of the valid JSON forms: with members in any order, needless escapes and white space.
    func written(_ random: inout SeededNumbers) -> String {
        let space = ["", "", "", " ", "\n\t"].randomElement(using: &random) ?? ""
        switch self {
        case .word(let word): return space + word
        case .number(let value):
            let forms = ["\(value)", "\(value)e0", "\(value)E+00"]
            return space + (forms.randomElement(using: &random) ?? "") + space
        case .text(let scalars): return space + Self.quoted(scalars, &random)
        case .array(let values):
            return "[" + values.map { $0.written(&random) }.joined(separator: ",") + space + "]"
        case .object(let members):
            let written = members.shuffled(using: &random).map { member in
                Self.quoted(member.name, &random) + space + ":" + member.value.written(&random)
            }
            return space + "{" + space + written.joined(separator: space + ",") + "}"
        }
    }

    private static func quoted(_ scalars: [Unicode.Scalar], _ random: inout SeededNumbers) -> String {
        var text = "\""
        for scalar in scalars {
            let mustEscape = scalar.value < 0x20 || scalar == "\"" || scalar == "\\"
            if mustEscape || Int.random(in: 0..<4, using: &random) == 0 {
                for unit in UTF16.encode(scalar).map(Array.init) ?? [] {
                    let digits = String(unit, radix: 16, uppercase: Bool.random(using: &random))
                    text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
                }
            } else {
                text.unicodeScalars.append(scalar)
            }
        }
        return text + "\""
    }
}
