internal import ReelClient

/// The difference of two counts as an increment.
enum CounterDifference {
    /// Returns the increment that turns one count into another; nil if both are equal.
    ///
    /// - Throws: `FieldValueError` if the stream cannot hold the new count or the increment exactly.
    static func operation(from old: Int, to new: Int) throws(FieldValueError) -> FieldOperation? {
        if old == new { return nil }
        _ = try new.json()
        let (amount, overflows) = new.subtractingReportingOverflow(old)
        guard !overflows, let exact = Double(exactly: amount) else {
            throw FieldValueError(found: "a change from \(old) to \(new)", expected: "a change of at most 2^53")
        }
        return .increment(exact)
    }
}
