/// What a client offers of permessage-deflate (RFC 7692), as far as this server takes it.
///
/// The server forgets its window after each message, so that a message is packed once for all who take it so, and asks
/// the client to do the same, so that nothing is kept for a connection between two messages.
struct DeflateOffer: Hashable {
    /// The client has named the largest window; the answer has to name it, too.
    private var namesServerWindow = false

    /// The first offer among the extensions that can be taken as it is; nil if there is none. One with a parameter that
    /// is unknown, doubled or has a wrong value is declined, and so is one that wants a smaller window of the server.
    init?(in fields: [String]) {
        for field in fields {
            for extensions in Self.split(field, at: ",") {
                if let offer = Self(parsing: Self.split(extensions, at: ";")) {
                    self = offer
                    return
                }
            }
        }
        return nil
    }

    private init?(parsing parts: [Substring]) {
        guard let name = parts.first, name.lowercased() == "permessage-deflate" else { return nil }
        var seen: Set<String> = []
        for part in parts.dropFirst() {
            let sides = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(Self.trimmed)
            let (name, value) = (sides[0].lowercased(), sides.count == 2 ? Self.unquoted(sides[1]) : nil)
            guard seen.insert(name).inserted, sides.count == 1 || value != nil else { return nil }
            switch (name, value) {
            case ("server_no_context_takeover", nil), ("client_no_context_takeover", nil): break
            case ("client_max_window_bits", nil): break
            // What is packed with less is unpacked all the same.
            case ("client_max_window_bits", let bits?): guard Self.windows.contains(bits) else { return nil }
            case ("server_max_window_bits", "15"): namesServerWindow = true
            default: return nil
            }
        }
    }

    /// Bits of a window, as they are written.
    private static let windows = Set((8...15).map(String.init))

    /// `Sec-WebSocket-Extensions` of the answer.
    var answer: String {
        "permessage-deflate; server_no_context_takeover; client_no_context_takeover"
            + (namesServerWindow ? "; server_max_window_bits=15" : "")
    }

    /// A token, or a token in quotes; nil if it is neither.
    private static func unquoted(_ text: Substring) -> String? {
        let isQuoted = text.count >= 2 && text.first == "\"" && text.last == "\""
        let token = isQuoted ? text.dropFirst().dropLast() : text
        return !token.isEmpty && token.utf8.allSatisfy(HTTPCharacters.isToken) ? String(token) : nil
    }

    /// Splits where the separator does not stand in quotes.
    private static func split(_ text: some StringProtocol, at separator: Character) -> [Substring] {
        var isQuoted = false
        return Substring(text).split(omittingEmptySubsequences: false) { character in
            if character == "\"" { isQuoted.toggle() }
            return character == separator && !isQuoted
        }.map(trimmed)
    }

    private static func trimmed(_ text: Substring) -> Substring {
        let isSpace = { (character: Character) in character == " " || character == "\t" }
        let start = text.drop(while: isSpace)
        return start[..<(start.lastIndex { !isSpace($0) }.map(start.index(after:)) ?? start.startIndex)]
    }
}
