package import ReelCore

/// Selects the messages of a range, and decides when the range is complete. Pure.
package struct RangeGathering: Sendable {
    package enum Step: Sendable {
        /// The message belongs to the range.
        case keep
        /// The message does not belong to the range.
        case drop
        /// The range cannot be read.
        case fail
    }

    /// The next seq: all below was received, or does not exist.
    package private(set) var next: Seq
    package private(set) var isComplete = false
    private let to: Seq
    private let bytes: Int
    private var isEmpty = true
    private var size = 0

    /// Creates the range from `next` to `to`.
    ///
    /// - Parameters:
    ///   - next: The first seq of the range.
    ///   - to: The last seq of the range.
    ///   - bytes: The approximate limit of the range in bytes. The range has at least one record if there is one.
    package init(next: Seq, to: Seq, bytes: Int) {
        self.next = next
        self.to = to
        self.bytes = bytes
    }

    /// Returns what to do with an arrival; `bytes` is the size of a record.
    package mutating func take(_ arrival: Arrival, bytes: Int) -> Step {
        guard !isComplete else { return .drop }
        switch arrival {
        case .record(let seq) where seq < next: break
        case .record(let seq) where seq <= to:
            size += bytes
            guard isEmpty || size <= self.bytes else {
                isComplete = true
                break
            }
            isEmpty = false
            next = seq + 1
            isComplete = next > to || size >= self.bytes
            return .keep
        case .record:
            next = to + 1
            isComplete = true
        case .end(let seq):
            next = max(next, min(seq, to + 1))
            isComplete = true
        case .error:
            // librdkafka skips a damaged batch and continues after it. Later messages do not say which records are
            // missing, so the range ends here.
            isComplete = true
            return isEmpty ? .fail : .drop
        }
        return .drop
    }
}
