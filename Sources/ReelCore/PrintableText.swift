/// Converts text from outside into a form that is safe for terminals and for readers of log lines.
///
/// A terminal interprets control characters as commands: they can change its title, type input, or show another text
/// than the real one. Bidi controls change the order in which a line is shown. Both are replaced by JSON escapes such
/// as `\u001b`, so that an escaped line of JSON stays the same JSON.
public enum PrintableText {
    /// True for a control character (C0, DEL, C1), a bidirectional control, a separator of lines or paragraphs, and an
    /// invisible character.
    public static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x00...0x1f, 0x7f...0x9f: true
        case 0x061c, 0x200e, 0x200f, 0x2028...0x202e, 0x2066...0x2069: true
        // Invisible characters: with them, two texts that look the same could differ.
        case 0x00ad, 0x180e, 0x200b, 0x2060...0x2064, 0xfeff, 0xfff9...0xfffb, 0xe0000...0xe007f: true
        default: false
        }
    }

    /// Returns the text as one line, with an escape for each control.
    public static func line(_ text: String) -> String {
        guard mayHoldControls(text.utf8) else { return text }
        var line = ""
        for scalar in text.unicodeScalars {
            if isControl(scalar) { line += escape(of: scalar) } else { line.unicodeScalars.append(scalar) }
        }
        return line
    }

    /// Returns the lines of a text, each escaped; the line feeds between them are kept.
    public static func lines(_ text: String) -> String {
        guard mayHoldControls(text.utf8.lazy.filter { $0 != UInt8(ascii: "\n") }) else { return text }
        return text.split(separator: "\n", omittingEmptySubsequences: false).map { line(String($0)) }
            .joined(separator: "\n")
    }

    /// Returns the JSON escape of a control, such as `\n` or `\u001b`.
    public static func escape(of scalar: Unicode.Scalar) -> String {
        switch scalar {
        case "\n": return "\\n"
        case "\r": return "\\r"
        case "\t": return "\\t"
        default:
            return Character(scalar).utf16.reduce(into: "") { text, unit in
                let digits = String(unit, radix: 16)
                text += "\\u" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits
            }
        }
    }

    /// Returns false if no byte belongs to a control. In UTF-8, all controls beyond ASCII begin with one of six bytes.
    private static func mayHoldControls(_ bytes: some Sequence<UInt8>) -> Bool {
        bytes.contains {
            $0 < 0x20 || $0 == 0x7f || $0 == 0xc2 || $0 == 0xd8 || 0xe1...0xe2 ~= $0 || $0 == 0xef || $0 == 0xf3
        }
    }
}
