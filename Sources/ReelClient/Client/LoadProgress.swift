internal import ReelCore

/// The progress of the first state of a stream, over all attempts to read it.
struct LoadProgress {
    /// The bytes that have arrived.
    private(set) var bytes: Int64 = 0
    /// The bytes that will have arrived at the end of this attempt; nil: not known.
    private(set) var expected: Int64?

    /// Counts a part of an answer with a state.
    mutating func received(_ response: TransportResponse) {
        switch response {
        case .head(_, let length): expected = length.flatMap { $0 < Self.lengthMax ? bytes + max(0, $0) : nil }
        case .body(let piece):
            bytes += Int64(piece.count)
            // A node may send more than it has named.
            expected = expected.map { max($0, bytes) }
        case .end, .failed: break
        }
    }

    /// A length that no state has, in bytes.
    private static let lengthMax: Int64 = 1 << 53
}
