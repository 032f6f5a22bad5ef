/// Keeps what happens over and over from filling the journal: so many lines in a while, then silence until it is over.
public struct LineLimiter: Sendable {
    private let lines: Int
    private let windowMs: Int64
    private var startMs: Int64?
    private var said = 0
    private var unsaid = 0

    /// So many lines in so many milliseconds.
    public init(lines: Int, windowMs: Int64) {
        self.lines = lines
        self.windowMs = windowMs
    }

    /// Whether a line may be written now; nil: it may not. The number is that of the lines left out before it.
    public mutating func admit(nowMs: Int64) -> Int? {
        if startMs.map({ nowMs - $0 >= windowMs }) ?? true {
            startMs = nowMs
            said = 0
        }
        guard said < lines else {
            unsaid += 1
            return nil
        }
        said += 1
        defer { unsaid = 0 }
        return unsaid
    }
}
