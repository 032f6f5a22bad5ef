/// The Base64 encoding (RFC 4648, 4) for handshakes.
enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let count = min(3, bytes.count - start)
            var word: UInt32 = 0
            for index in 0..<3 { word = word << 8 | (index < count ? UInt32(bytes[start + index]) : 0) }
            for index in 0..<4 {
                let digit = Int(word >> UInt32(18 - 6 * index)) & 63
                text.append(index <= count ? alphabet[digit] : UInt8(ascii: "="))
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// True if the text is the Base64 form of exactly 16 bytes.
    static func isSixteenBytes(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        return bytes.count == 24 && bytes[22...] == [UInt8(ascii: "="), UInt8(ascii: "=")]
            && bytes[..<22].allSatisfy(alphabet.contains)
    }
}
