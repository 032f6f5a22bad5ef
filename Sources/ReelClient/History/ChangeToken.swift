/// A place in the history of changes that a device keeps of a stream. Pass it to `SyncStream.changes(since:)`.
///
/// A token belongs to one stream of one device. Each part of an app can keep its own one, together with the data that
/// it has made from the changes. For a token of another stream, device or user, and for one that is too old, the answer
/// is a reset.
public struct ChangeToken: Sendable, Hashable {
    /// The number that the history got when it began.
    let history: UInt64
    /// The number of the next row.
    let number: Int64
    /// The tag of the row before it. A store that was restored from a backup has other rows under the same numbers.
    let tag: UInt32
}

extension ChangeToken: LosslessStringConvertible {
    /// Creates the token that has this text; nil if no token has it.
    public init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 3, let history = UInt64(parts[0], radix: 16), let number = Int64(parts[1]), number > 0,
            let tag = UInt32(parts[2], radix: 16)
        else { return nil }
        self.init(history: history, number: number, tag: tag)
        // Swift also reads numbers with a sign, with zeros before them, and with capital digits.
        if description != text { return nil }
    }

    /// The token as text of at most 45 characters, to be stored.
    public var description: String { "\(String(history, radix: 16))-\(number)-\(String(tag, radix: 16))" }
}

extension ChangeToken: Codable {
    /// Reads the text.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let token = ChangeToken(text) else {
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription: "found \(text.prefix(64).debugDescription), expected a change token"
            )
        }
        self = token
    }

    /// Writes the text.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}
