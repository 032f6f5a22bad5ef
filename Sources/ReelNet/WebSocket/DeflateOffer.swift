/// A client's offer of permessage-deflate (RFC 7692) that this server can accept.
///
/// The server uses no context takeover: it resets its window after each message, so that a message is packed once for
/// all sockets. It asks the client to do the same, so that a connection needs no memory for it between two messages.
struct DeflateOffer: Hashable {
    /// True if the client has named the largest server window; the response then has to name it too.
    private var namesServerWindow = false

    /// Takes the first acceptable offer among the extensions; nil if there is none. An offer is declined if a parameter
    /// is unknown, is repeated or has an invalid value. An offer that asks the server for a smaller window is declined
    /// too.
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
            // This side can unpack messages of any smaller window.
            case ("client_max_window_bits", let bits?): guard Self.windows.contains(bits) else { return nil }
            case ("server_max_window_bits", "15"): namesServerWindow = true
            default: return nil
            }
        }
    }

    /// The valid window sizes in bits, as text.
    private static let windows = Set((8...15).map(String.init))

    /// The `Sec-WebSocket-Extensions` field of the response.
    var answer: String {
        "permessage-deflate; server_no_context_takeover; client_no_context_takeover"
            + (namesServerWindow ? "; server_max_window_bits=15" : "")
    }

    /// Returns a token, without its quotes if there are any; nil if the text is not a token.
    private static func unquoted(_ text: Substring) -> String? {
        let isQuoted = text.count >= 2 && text.first == "\"" && text.last == "\""
        let token = isQuoted ? text.dropFirst().dropLast() : text
        return !token.isEmpty && token.utf8.allSatisfy(HTTPCharacters.isToken) ? String(token) : nil
    }

    /// Splits the text at separators that are not in quotes.
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
