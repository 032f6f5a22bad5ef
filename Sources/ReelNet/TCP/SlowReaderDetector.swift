/// A check that a peer reads what is sent to it. Between two checks the peer has to take all bytes that waited, or at
/// least `bytesMin`.
public struct SlowReaderDetector: Sendable {
    /// The result of a check.
    public enum Finding: Sendable {
        /// Nothing had waited at the previous check, or this is the first check.
        case nothingWaited
        /// The peer has taken enough.
        case reads
        /// The peer has taken too little.
        case tooSlow
    }

    /// The number of bytes that the peer has to take between two checks if more than that wait.
    public static let bytesMin = 16 << 10

    /// The total number of bytes that the peer has to have taken by the next check; 0 if nothing waits.
    private var goal = 0

    /// Creates a detector that has made no check yet.
    public init() {}

    /// Makes a check.
    ///
    /// - Parameters:
    ///   - written: The number of bytes written to the peer in total.
    ///   - left: The number of these bytes that the peer has not taken yet.
    public mutating func look(written: Int, left: Int) -> Finding {
        let (taken, due) = (written - left, goal)
        goal = left > 0 ? taken + min(left, Self.bytesMin) : 0
        if due == 0 { return .nothingWaited }
        return taken >= due ? .reads : .tooSlow
    }
}
