package import ReelCore
package import ReelLog

/// Where a tail stands in its partition, and what comes next to it. Without effects: `TailReader` asks, and acts.
package struct TailPlace: Sendable {
    package enum Step: Sendable {
        /// The next record, to be delivered.
        case deliver
        /// Nothing to do.
        case goOn
        /// Read the last record again, and on from there: `recheck`.
        case check
        /// Look at the log with another handle.
        case doubt
    }

    /// The next seq to deliver.
    package var next: Seq
    /// The last record that was delivered.
    package var last: Witness?
    /// The troubles of the handle when it was last known that the log is still the same, or began to be looked at.
    private var troubles: Int
    /// The last record is read again and has not come yet.
    private var isChecking = false

    /// A place from which nothing was read since the log was known to be the same.
    package init(next: Seq, last: Witness?, troubles: Int) {
        self.next = next
        self.last = last
        self.troubles = troubles
    }

    /// The last record is read again from now on.
    package mutating func recheck(troubles: Int) {
        self.troubles = troubles
        isChecking = true
    }

    /// Another handle looks at the log from now on.
    package mutating func doubt(troubles: Int) {
        self.troubles = troubles
        isChecking = false
    }

    /// The log was seen to be the same, and read to before `next`. What has happened to the handle since `doubt` shows
    /// with what comes next.
    package mutating func settle(next: Seq, last: Witness?) {
        self.next = next
        self.last = last
    }

    /// What to do with what came. `troubles`: those that the handle has had by now. `hash`: that of the record, if it
    /// is one.
    package mutating func take(_ arrival: Arrival, troubles: Int, hash: () -> UInt64) -> Step {
        let isExpected =
            switch arrival {
            case .record(let seq) where isChecking: last.map { seq == $0.seq && hash() == $0.hash } ?? false
            case .record(let seq): seq == next
            case .end(let seq): !isChecking && seq <= next
            case .error: false
            }
        guard isExpected else { return .doubt }
        // Whoever answers now may be another one than before.
        guard troubles == self.troubles else { return .check }
        if case .record = arrival, !isChecking { return .deliver }
        isChecking = false
        return .goOn
    }
}
