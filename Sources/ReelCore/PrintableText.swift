/// Text that comes from outside, in a form that a terminal and a reader of a log can be shown.
///
/// A terminal takes control characters for commands: it can be made to change its title, to type, or to show another
/// text than the one that is there. Bidi controls change the order in which a line is shown. Both are written as the
/// escapes of JSON, `\u001b`, so that an escaped line of JSON is the same JSON.
public enum PrintableText {
    /// True for a control character (C0, DEL, C1), a control of the direction of writing (bidi), a separator of lines
    /// or paragraphs, and a character that is never seen.
    public static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x00...0x1f, 0x7f...0x9f: true
        case 0x061c, 0x200e, 0x200f, 0x2028...0x202e, 0x2066...0x2069: true
        // Characters that are not seen: two texts that look the same would not be.
        case 0x00ad, 0x180e, 0x200b, 0x2060...0x2064, 0xfeff, 0xfff9...0xfffb, 0xe0000...0xe007f: true
        default: false
        }
    }

    /// The text in one line, with an escape for each control.
    public static func line(_ text: String) -> String {
        guard mayHoldControls(text.utf8) else { return text }
        var line = ""
        for scalar in text.unicodeScalars {
            if isControl(scalar) { line += escape(of: scalar) } else { line.unicodeScalars.append(scalar) }
        }
        return line
    }

    /// The lines of a text, each escaped; the line feeds between them stay.
    public static func lines(_ text: String) -> String {
        guard mayHoldControls(text.utf8.lazy.filter { $0 != UInt8(ascii: "\n") }) else { return text }
        return text.split(separator: "\n", omittingEmptySubsequences: false).map { line(String($0)) }
            .joined(separator: "\n")
    }

    /// `\n`, `\u001b`: the escape of JSON for a control.
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

    /// False if no byte belongs to a control. All controls beyond ASCII begin with one of six bytes in UTF-8.
    private static func mayHoldControls(_ bytes: some Sequence<UInt8>) -> Bool {
        bytes.contains {
            $0 < 0x20 || $0 == 0x7f || $0 == 0xc2 || $0 == 0xd8 || 0xe1...0xe2 ~= $0 || $0 == 0xef || $0 == 0xf3
        }
    }
}
