/// Whether a peer takes what waits for it: from one look to the next as much as there was, or at least `bytesMin`.
public struct SlowReaderDetector: Sendable {
    /// What a look has found.
    public enum Finding: Sendable {
        /// Nothing had waited at the look before, or there was none.
        case nothingWaited
        /// As much was taken as had to be.
        case reads
        /// Less was taken.
        case tooSlow
    }

    /// Of more than this so much has to be taken from one look to the next.
    public static let bytesMin = 16 << 10

    /// What has to have been taken in all at the next look; 0: nothing waits.
    private var goal = 0

    /// A peer at which nobody has looked yet.
    public init() {}

    /// Looks: so many bytes were written in all, so many of them are not taken.
    public mutating func look(written: Int, left: Int) -> Finding {
        let (taken, due) = (written - left, goal)
        goal = left > 0 ? taken + min(left, Self.bytesMin) : 0
        if due == 0 { return .nothingWaited }
        return taken >= due ? .reads : .tooSlow
    }
}
