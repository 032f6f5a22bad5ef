/// The turns of connections that have much to write: together they give the kernel so much in a round of the loop, so
/// that what comes for others meanwhile does not wait until all of it is written. Who has had no turn is first in the
/// next round.
struct BulkTurns {
    /// What takes a tenth of a millisecond.
    static let roundBytes = 256 << 10

    private var bytes = 0
    /// Who waits longest is the last of `first`, and then the first of `others`.
    private var (first, others): ([TCPConnection], [TCPConnection]) = ([], [])

    var isWaiting: Bool { !first.isEmpty || !others.isEmpty }

    mutating func beginRound() { bytes = 0 }

    mutating func count(_ bytes: Int) { self.bytes += bytes }

    /// Whether it may write now; if not, it waits.
    mutating func admit(_ connection: TCPConnection) -> Bool {
        if bytes < Self.roundBytes { return true }
        others.append(connection)
        return false
    }

    /// Whose turn it is; nil: nobody's in this round.
    mutating func next() -> TCPConnection? {
        guard bytes < Self.roundBytes else { return nil }
        if first.isEmpty {
            first = others.reversed()
            others = []
        }
        return first.popLast()
    }
}
