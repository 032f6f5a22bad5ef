import ReelCore

/// A chunk of the index of events: consecutive events of one stream, each as it is delivered to clients. A header
/// precedes each event, in little-endian order: its seq (8 bytes), its length (3 bytes) and its outcome (1 byte).
struct EventChunk {
    /// The size at which a chunk is full, in bytes. The limit keeps the read of a short range short.
    static let fullBytes = 64 << 10

    private(set) var bytes: [UInt8] = []
    private(set) var first = Seq.none
    private(set) var last = Seq.none
    /// The offset of the last event's value in `bytes`.
    private var lastValue = 0

    var isEmpty: Bool { bytes.isEmpty }
    var isFull: Bool { bytes.count >= Self.fullBytes }

    /// Adds an event's value and outcome. The seqs must ascend.
    mutating func append(_ seq: Seq, _ value: Bytes, _ outcome: StoredOutcome) {
        if isEmpty { first = seq }
        last = seq
        withUnsafeBytes(of: UInt64(seq).littleEndian) { bytes.append(contentsOf: $0) }
        let length = UInt32(value.count) | UInt32(outcome.code) << 24
        withUnsafeBytes(of: length.littleEndian) { bytes.append(contentsOf: $0) }
        lastValue = bytes.count
        bytes.append(contentsOf: value)
    }

    /// The gateway's clock in the last event, in milliseconds since 1970; nil: the event has none.
    var lastClock: Int64? {
        bytes.withUnsafeBytes { EventIntake.clock(of: Bytes(rebasing: $0[lastValue...])) }
    }

    mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
        first = .none
        last = .none
    }

    /// Calls `body` for each event of a stored chunk until it returns false. Returns false if the chunk is damaged.
    static func forEach(in chunk: Bytes, _ body: (Seq, StoredOutcome, Bytes) -> Bool) -> Bool {
        var at = 0
        while at < chunk.count {
            guard chunk.count - at >= 12 else { return false }
            let seq = Seq(bitPattern: UInt64(littleEndian: chunk.loadUnaligned(fromByteOffset: at, as: UInt64.self)))
            let length = UInt32(littleEndian: chunk.loadUnaligned(fromByteOffset: at + 8, as: UInt32.self))
            let (count, outcome) = (Int(length & 0xFF_FFFF), StoredOutcome(code: UInt8(length >> 24)))
            guard seq >= 0, chunk.count - at - 12 >= count else { return false }
            guard body(seq, outcome, Bytes(rebasing: chunk[(at + 12)..<(at + 12 + count)])) else { return true }
            at += 12 + count
        }
        return true
    }
}
