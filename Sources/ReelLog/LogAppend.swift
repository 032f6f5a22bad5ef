public import ReelCore

/// A record to be appended to the log.
public struct LogAppend: Sendable {
    /// The stream's name, or `~reel`.
    public var key: [UInt8]
    /// The value of the record, such as an event.
    public var value: [UInt8]
    /// The last record of the partition that the gateway had read; nil: none.
    public var witness: Witness?

    /// Creates a record of these bytes.
    public init(key: [UInt8], value: [UInt8], witness: Witness? = nil) {
        self.key = key
        self.value = value
        self.witness = witness
    }
}

/// The last record of a partition that a gateway had read when it appended another record. It is stored in header `p`.
public struct Witness: Equatable, Sendable {
    /// The seq of the last record read.
    public var seq: Seq
    /// FNV-1a 64 over the record's key, a zero byte, and its value.
    public var hash: UInt64

    /// Creates a witness of the last record read.
    public init(seq: Seq, hash: UInt64) {
        self.seq = seq
        self.hash = hash
    }
}
