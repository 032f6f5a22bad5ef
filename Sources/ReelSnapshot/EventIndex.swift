import ReelCore

/// A chunk of the index of events: events of one stream, one behind the other, as they are delivered. Each is preceded
/// by its seq (8 bytes), its length (3 bytes) and what became of it (1 byte), little-endian.
struct EventChunk {
    /// A chunk is written once it has so many bytes, so that a short range never reads a long one.
    static let fullBytes = 64 << 10

    private(set) var bytes: [UInt8] = []
    private(set) var first = Seq.none
    private(set) var last = Seq.none
    /// Where the value of the last event begins in `bytes`.
    private var lastValue = 0

    var isEmpty: Bool { bytes.isEmpty }
    var isFull: Bool { bytes.count >= Self.fullBytes }

    /// Adds an event's value and what became of it; seqs grow.
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

    /// Calls `body` for each event of a stored chunk until it says false. Returns false where the chunk is damaged.
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
