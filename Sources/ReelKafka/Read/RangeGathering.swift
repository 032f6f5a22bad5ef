package import ReelCore

/// Which of the messages that come make up a range, and when it is whole. Without effects.
package struct RangeGathering: Sendable {
    package enum Step: Sendable {
        /// It is of the range.
        case keep
        /// It is not.
        case drop
        /// The range cannot be read.
        case fail
    }

    /// All below was seen, or is not there.
    package private(set) var next: Seq
    package private(set) var isComplete = false
    private let to: Seq
    private let bytes: Int
    private var isEmpty = true
    private var size = 0

    /// The range `next ... to`, about so many bytes of it, at least one record where there is one.
    package init(next: Seq, to: Seq, bytes: Int) {
        self.next = next
        self.to = to
        self.bytes = bytes
    }

    /// What to do with what came; `bytes` is the size of a record.
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
            // librdkafka leaves out a batch that is damaged, and goes on behind it. So nothing that follows says what
            // is there: the range ends before it.
            isComplete = true
            return isEmpty ? .fail : .drop
        }
        return .drop
    }
}
