/// The identifier of a deployment, which all its logs share: 64 bits, written as 16 lower-case hex digits.
///
/// It is the epoch of the deployment's first log, and each later log inherits it. A device can therefore distinguish
/// the next log of its own deployment from a log of another one.
public struct Deployment: Hashable, Sendable {
    /// The 64 bits.
    public let value: UInt64

    /// Creates the deployment with these bits.
    public init(_ value: UInt64) {
        self.value = value
    }

    /// Creates the deployment with this epoch as its first log. A log of an older build names no deployment. Then its
    /// own epoch is used instead, on every node and after every start.
    public init(beginningWith epoch: Epoch) {
        value = epoch.value
    }
}

extension Deployment: CustomStringConvertible {
    /// Creates the deployment from 16 lower-case hex digits; nil for any other text.
    public init?(_ text: String) {
        guard let value = Hex64.parse(text) else { return nil }
        self.init(value)
    }

    /// The text: 16 lower-case hex digits.
    public var description: String { Hex64.text(value) }
}
