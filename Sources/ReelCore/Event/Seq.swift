/// The number of an event: its offset in its partition, contiguous from 0, given by the log. `Seq.none` is −1.
public typealias Seq = Int64

extension Seq {
    /// The seq before the first one: nothing read, nothing written, no such event.
    public static let none: Seq = -1
}

/// The number of a site's operation in one stream: 0, 1, 2, … without a gap.
public typealias Op = Int64

/// The numbers that the contract allows in an event: integers that a double holds exactly.
public let largestInteger: Int64 = 1 << 53 - 1
