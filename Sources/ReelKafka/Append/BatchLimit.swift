/// How large records and batches may be: what the format allows, until the brokers refuse a batch as too large. Then
/// they are asked how much they take, and from time to time whether it is more again. Without effects: `Appender` asks.
struct BatchLimit: Sendable {
    /// The largest record that is taken, key and value together.
    private(set) var recordBytes: Int
    /// The largest batch that the next producer makes.
    private(set) var batchBytes: Int
    private let usual: (recordBytes: Int, batchBytes: Int)
    /// The largest record of a batch that was refused, until it is known why.
    private var refusedBytes: Int?
    /// They have refused what they say that they take.
    private var isContradicted = false
    private let holdMs: Int64
    private var askAtMs = Int64.max

    /// So long a limit holds before the brokers are asked again, if nothing else is said.
    static let holdMs: Int64 = 60_000
    /// What Kafka puts around the records of a batch, and we around one.
    static let overhead = 512

    /// What the format allows, in batches of this size.
    init(batchBytes: Int, holdMs: Int64 = Self.holdMs) {
        self.holdMs = holdMs
        recordBytes = KafkaConfiguration.messageBytesMax - Self.overhead
        self.batchBytes = batchBytes
        usual = (recordBytes, batchBytes)
    }

    /// A batch was refused, and it is not known yet what would not be.
    var isUnsettled: Bool { refusedBytes != nil }

    /// A batch was refused whose largest record has so many bytes.
    mutating func refused(recordBytes: Int) {
        refusedBytes = max(refusedBytes ?? 0, recordBytes)
    }

    /// Whether the brokers are to be asked how large a batch may be.
    func shouldAsk(nowMs: Int64) -> Bool { isUnsettled || nowMs >= askAtMs }

    /// The brokers take batches of up to so many bytes; nil: they do not say.
    mutating func told(_ bytes: Int?, nowMs: Int64) {
        if let refused = refusedBytes {
            refusedBytes = nil
            settle(refused, bytes)
        } else if let bytes {
            take(bytes)
        }
        askAtMs = (recordBytes, batchBytes) == usual ? .max : nowMs + holdMs
    }

    private mutating func settle(_ refused: Int, _ told: Int?) {
        if let told, told < max(batchBytes, recordBytes + Self.overhead) {
            isContradicted = false
            return take(told)
        }
        // Not all brokers hear at once of what an operator has changed.
        isContradicted = told != nil && !isContradicted
        guard !isContradicted else { return }
        // A batch that held one record only names it; one that may have held several is made half as large.
        if refused + Self.overhead >= batchBytes {
            recordBytes = max(1, refused - 1)
        } else {
            batchBytes = max(1, batchBytes / 2)
        }
    }

    private mutating func take(_ told: Int) {
        recordBytes = min(usual.recordBytes, max(1, told - Self.overhead))
        batchBytes = min(usual.batchBytes, max(1, told))
    }
}
