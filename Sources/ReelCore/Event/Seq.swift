/// The number of a record: its offset in its partition, contiguous from 0, assigned by the log. `Seq.none` is −1.
public typealias Seq = Int64

extension Seq {
    /// The seq before the first one. It means that nothing was read or written, or that there is no such event.
    public static let none: Seq = -1
}

/// The number of an event among the events of its site in one stream: 0, 1, 2, … without a gap.
public typealias Op = Int64

/// The largest integer in an event. A double represents every integer up to it exactly.
public let largestInteger: Int64 = 1 << 53 - 1
