package import ReelCore
package import ReelLog

/// The position of a tail in its partition, and the decision about each arrival. Pure: `TailReader` acts on it.
package struct TailPlace: Sendable {
    package enum Step: Sendable {
        /// Deliver the next record.
        case deliver
        /// Do nothing.
        case proceed
        /// Read the last record again, and continue from there: `recheck`.
        case check
        /// Revalidate the log through another handle.
        case doubt
    }

    /// The next seq to deliver.
    package var next: Seq
    /// The last record that was delivered.
    package var last: Witness?
    /// The handle's error count when the log was last known to be the same, or when its revalidation began.
    private var troubles: Int
    /// True while the last record is being read again.
    private var isChecking = false

    /// Creates a position. Nothing was read from it since the log was known to be the same.
    package init(next: Seq, last: Witness?, troubles: Int) {
        self.next = next
        self.last = last
        self.troubles = troubles
    }

    /// Starts to read the last record again.
    package mutating func recheck(troubles: Int) {
        self.troubles = troubles
        isChecking = true
    }

    /// Starts a revalidation through another handle.
    package mutating func doubt(troubles: Int) {
        self.troubles = troubles
        isChecking = false
    }

    /// Takes the result of a revalidation: the log is the same, and was read up to `next`. Errors of the handle since
    /// `doubt` show with the next arrival.
    package mutating func settle(next: Seq, last: Witness?) {
        self.next = next
        self.last = last
    }

    /// Returns what to do with an arrival.
    ///
    /// - Parameters:
    ///   - arrival: A record, an end, or an error.
    ///   - troubles: The handle's error count by now.
    ///   - hash: Returns the hash of the record, if it is one.
    package mutating func take(_ arrival: Arrival, troubles: Int, hash: () -> UInt64) -> Step {
        let isExpected =
            switch arrival {
            case .record(let seq) where isChecking: last.map { seq == $0.seq && hash() == $0.hash } ?? false
            case .record(let seq): seq == next
            case .end(let seq): !isChecking && seq <= next
            case .error: false
            }
        guard isExpected else { return .doubt }
        // After an error another broker may answer.
        guard troubles == self.troubles else { return .check }
        if case .record = arrival, !isChecking { return .deliver }
        isChecking = false
        return .proceed
    }
}
