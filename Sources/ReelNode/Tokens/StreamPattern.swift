public import ReelCore

/// Which streams a token speaks of: one by its name, or with `*` at the end all whose names begin so; `*` alone is
/// all. Nothing else has a meaning.
public struct StreamPattern: Hashable, Sendable, LosslessStringConvertible {
    /// As it was written.
    public let description: String
    private let prefix: [UInt8]
    private let isPrefix: Bool

    /// Nil if no stream could have such a name.
    public init?(_ text: String) {
        description = text
        isPrefix = text.utf8.last == UInt8(ascii: "*")
        prefix = Array(isPrefix ? text.utf8.dropLast() : text.utf8[...])
        // What a name may go on with makes a valid name of any valid beginning: also of the empty one and of dots.
        let name = isPrefix ? prefix.prefix(StreamName.largest - 1) + [UInt8(ascii: "a")] : prefix[...]
        guard prefix.count <= StreamName.largest, Array(name).withUnsafeBytes(StreamName.isValid) else { return nil }
    }

    /// Whether it speaks of this stream.
    public func matches(_ stream: StreamName) -> Bool {
        let name = stream.description.utf8
        return isPrefix ? name.starts(with: prefix) : name.elementsEqual(prefix)
    }
}
