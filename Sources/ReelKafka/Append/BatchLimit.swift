/// The limits for records and batches. They are those of the format until the brokers refuse a batch as too large. Then
/// the brokers are asked for their limit, and asked again at intervals in case it was raised. Pure: `BrokerLimit` asks.
struct BatchLimit: Sendable {
    /// The largest record that is accepted, in bytes of key and value together.
    private(set) var recordBytes: Int
    /// The size of the largest batch that the next producer makes, in bytes.
    private(set) var batchBytes: Int
    private let usual: (recordBytes: Int, batchBytes: Int)
    /// The largest record of a refused batch, in bytes, until the reason is known.
    private var refusedBytes: Int?
    /// True if the brokers have refused a size that they claim to accept.
    private var isContradicted = false
    private let holdMs: Int64
    private var askAtMs = Int64.max

    /// How long a limit holds before the brokers are asked again, in milliseconds.
    static let holdMs: Int64 = 60_000
    /// The bytes reserved for what Kafka adds to the records of a batch, and Reel to a record.
    static let overhead = 512

    /// Creates the limits of the format, with batches of `batchBytes`.
    init(batchBytes: Int, holdMs: Int64 = Self.holdMs) {
        self.holdMs = holdMs
        recordBytes = KafkaConfiguration.messageBytesMax - Self.overhead
        self.batchBytes = batchBytes
        usual = (recordBytes, batchBytes)
    }

    /// True if a batch was refused, and the limit is not known yet.
    var isUnsettled: Bool { refusedBytes != nil }

    /// Notes a refused batch with a largest record of `recordBytes`.
    mutating func refused(recordBytes: Int) {
        refusedBytes = max(refusedBytes ?? 0, recordBytes)
    }

    /// True if the brokers must be asked for the size of their largest batch.
    func shouldAsk(nowMs: Int64) -> Bool { isUnsettled || nowMs >= askAtMs }

    /// Takes the answer of the brokers.
    ///
    /// - Parameters:
    ///   - bytes: The largest batch that they accept; nil: they did not say.
    ///   - nowMs: The present time.
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
        // The brokers do not learn of a changed setting at the same time.
        isContradicted = told != nil && !isContradicted
        guard !isContradicted else { return }
        // If the batch can have held only one record, that record is too large. Else batches become half as large.
        if refused + Self.overhead >= batchBytes {
            // A producer that made its batches under an earlier limit may have been refused a larger record.
            recordBytes = max(1, min(recordBytes, refused - 1))
        } else {
            batchBytes = max(1, batchBytes / 2)
        }
    }

    private mutating func take(_ told: Int) {
        recordBytes = min(usual.recordBytes, max(1, told - Self.overhead))
        batchBytes = min(usual.batchBytes, max(1, told))
    }
}
