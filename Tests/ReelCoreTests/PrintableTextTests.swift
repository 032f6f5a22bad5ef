import Foundation
import ReelCore
import Testing

/// Tests the form in which text from outside is printed to terminals and log lines.
@Suite struct PrintableTextTests {
    @Test(
        "a control character and a bidi control become escapes of JSON",
        arguments: [
            ("\u{1b}[31mX\u{1b}]0;pwn\u{7}", #"\u001b[31mX\u001b]0;pwn\u0007"#), ("a\r\nb\tc", #"a\r\nb\tc"#),
            ("\u{7f}\u{80}\u{9b}\u{9f}", #"\u007f\u0080\u009b\u009f"#), ("\u{0}", #"\u0000"#),
            ("\u{202a}\u{202e}\u{2066}\u{2069}", #"\u202a\u202e\u2066\u2069"#),
            ("\u{200e}\u{200f}\u{61c}\u{2028}", #"\u200e\u200f\u061c\u2028"#), ("a\r\n", #"a\r\n"#),
            ("\u{ad}\u{200b}\u{feff}\u{e0041}", #"\u00ad\u200b\ufeff\udb40\udc41"#),
        ]
    )
    func controls(text: String, line: String) { #expect(PrintableText.line(text) == line) }

    @Test("other text stays as it is", arguments: ["", "plain", "é ü 😀 👨‍👩‍👧 שלום عربى – …", "\\u001b", "a\u{a0}b\u{301}"])
    func plain(text: String) {
        #expect(PrintableText.line(text) == text)
        #expect(PrintableText.lines(text) == text)
    }

    @Test("lines keep their line feeds, and nothing else")
    func lines() {
        #expect(PrintableText.lines("a\u{1b}\n\nb\u{9b}\n") == "a\\u001b\n\nb\\u009b\n")
        #expect(PrintableText.lines("a\r\nb") == #"a\r\nb"#, "a line feed behind a carriage return is no line's end")
    }

    @Test("an escaped line of JSON is the same JSON")
    func json() throws {
        let text = (0x20...0x2fff).compactMap(Unicode.Scalar.init).reduce(into: "") { $0.unicodeScalars.append($1) }
        let line = String(decoding: try JSONEncoder().encode([text]), as: UTF8.self)
        let escaped = PrintableText.lines(line)
        #expect(escaped != line)
        #expect(try JSONDecoder().decode([String].self, from: Data(escaped.utf8)) == [text])
        #expect(!escaped.unicodeScalars.contains { PrintableText.isControl($0) })
    }
}
