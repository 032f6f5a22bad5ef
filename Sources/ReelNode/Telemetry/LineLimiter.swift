/// A rate limit of log lines that repeat: at most `lines` lines per window, then none until the window is over.
public struct LineLimiter: Sendable {
    private let lines: Int
    private let windowMs: Int64
    private var startMs: Int64?
    private var written = 0
    private var leftOut = 0

    /// A limit of `lines` lines in `windowMs` milliseconds.
    public init(lines: Int, windowMs: Int64) {
        self.lines = lines
        self.windowMs = windowMs
    }

    /// Returns the number of lines left out since the last admitted one if a line may be written now; nil: it may not.
    /// `nowMs` is the current time in milliseconds.
    public mutating func admit(nowMs: Int64) -> Int? {
        // A clock that was set back begins a window, too.
        if startMs.map({ nowMs - $0 >= windowMs || nowMs < $0 }) ?? true {
            startMs = nowMs
            written = 0
        }
        guard written < lines else {
            leftOut += 1
            return nil
        }
        written += 1
        defer { leftOut = 0 }
        return leftOut
    }
}
