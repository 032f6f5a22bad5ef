public import ReelCore

/// A pattern of stream names in a token: one name, or a prefix and `*`. `*` alone matches all streams. No other
/// character has a special meaning.
public struct StreamPattern: Hashable, Sendable, LosslessStringConvertible {
    /// The text of the pattern.
    public let description: String
    private let prefix: [UInt8]
    private let isPrefix: Bool

    /// Nil if no valid stream name matches the text.
    public init?(_ text: String) {
        description = text
        isPrefix = text.utf8.last == UInt8(ascii: "*")
        prefix = Array(isPrefix ? text.utf8.dropLast() : text.utf8[...])
        // Any character that a name may continue with makes a valid name of any valid prefix, also of an empty one and
        // of dots.
        let name = isPrefix ? prefix.prefix(StreamName.largest - 1) + [UInt8(ascii: "a")] : prefix[...]
        guard prefix.count <= StreamName.largest, Array(name).withUnsafeBytes(StreamName.isValid) else { return nil }
    }

    /// Returns true if the pattern matches the stream.
    public func matches(_ stream: StreamName) -> Bool {
        let name = stream.description.utf8
        return isPrefix ? name.starts(with: prefix) : name.elementsEqual(prefix)
    }
}
