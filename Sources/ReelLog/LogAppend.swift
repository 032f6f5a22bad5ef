public import ReelCore

/// A record on its way into the log.
public struct LogAppend: Sendable {
    /// The stream's name, or `~reel`.
    public var key: [UInt8]
    /// The event.
    public var value: [UInt8]
    /// What the gateway had read last of the partition; nil: nothing.
    public var witness: Witness?

    /// A record of these bytes.
    public init(key: [UInt8], value: [UInt8], witness: Witness? = nil) {
        self.key = key
        self.value = value
        self.witness = witness
    }
}

/// What a gateway had read last of the partition when it handed a record over: header `p`.
public struct Witness: Equatable, Sendable {
    /// The seq of the record that had been read last.
    public var seq: Seq
    /// FNV-1a 64 of its key, a zero byte, its value.
    public var hash: UInt64

    /// The record that was read last.
    public init(seq: Seq, hash: UInt64) {
        self.seq = seq
        self.hash = hash
    }
}
