/// Produces the lines of a snapshot, a delta or a rest one at a time: the first line, sites, objects, tombstones, the
/// last line.
///
/// The writer holds the state at the time of its creation; the fold may change in the meantime.
public struct SnapshotWriter: Sendable {
    private enum Step {
        case first, body, last, done
    }

    private let fold: Fold
    private let lines: SnapshotLines
    private let digest: UInt64
    private let slots: [Int]
    private var step = Step.first
    private var line = 0

    init(_ fold: Fold, after: Seq, cut: SnapshotCut? = nil, digest: UInt64) {
        self.fold = fold
        self.digest = digest
        var lines = SnapshotLines(fold, after: after, cut: cut)
        slots = fold.slots(after: lines.floor).filter { lines.lists(fold.objects[$0]) }
        for slot in slots { lines.nameSites(of: fold.objects[slot]) }
        lines.finishNaming()
        self.lines = lines
    }

    /// The number of lines between the first and the last.
    public var count: Int { lines.listed.count + slots.count }

    /// Appends the next line with its line feed. Returns false after the last line.
    public mutating func next(into output: inout [UInt8]) -> Bool {
        switch step {
        case .done: return false
        case .first:
            lines.writeFirst(to: &output)
            step = count > 0 ? .body : .last
        case .body:
            if line < lines.listed.count {
                lines.write(site: lines.listed[line], to: &output)
            } else {
                lines.write(fold.objects[slots[line - lines.listed.count]], to: &output)
            }
            line += 1
            if line == count { step = .last }
        case .last:
            lines.writeLast(count: count, digest: digest, to: &output)
            step = .done
        }
        output.append(UInt8(ascii: "\n"))
        return true
    }

    /// Appends all remaining lines.
    public mutating func writeAll(to output: inout [UInt8]) {
        while next(into: &output) {}
    }
}

extension Fold {
    /// Returns a writer of the current state as lines: a snapshot, or a delta if `after` ≥ 0.
    ///
    /// A delta contains the changes after the seq `after`. It can be applied to a fold with a seq between `after` and
    /// `seq`.
    /// - Throws: `truncated` if `after` is below the horizon; `bad_range` if `after` is above `seq`.
    public mutating func snapshot(after: Seq = .none) throws(ReelError) -> SnapshotWriter {
        try checkAnswer(after: after, beyond: nil)
        return SnapshotWriter(self, after: max(after, .none), digest: digest())
    }

    /// Returns a writer of the rest of an answer that was cut, as lines.
    ///
    /// The rest contains the changes after the seq `after`, and beyond the cut the changes after `cut.beyond`. It can
    /// be applied to a state that is as of `after` or later up to the cut, and as of `cut.beyond` or later beyond it.
    /// - Throws: `truncated` if a tombstone may be missing: `cut.beyond` is below the horizon, or `after` is if the
    ///   reader holds nothing beyond the cut. `bad_range` if `cut.beyond` is above `after`, or `after` above `seq`.
    public mutating func rest(after: Seq, beyond cut: SnapshotCut) throws(ReelError) -> SnapshotWriter {
        try checkAnswer(after: after, beyond: cut)
        return SnapshotWriter(self, after: after, cut: cut, digest: digest())
    }

    /// Throws unless the state has everything that the lines of a snapshot, a delta or a rest need.
    func checkAnswer(after: Seq, beyond cut: SnapshotCut?) throws(ReelError) {
        guard let cut else {
            if after > .none { try checkDelta(after: after) }
            return
        }
        guard after > .none, cut.beyond <= after else {
            throw ReelError(
                .badRange,
                "found a rest wanted after seq \(after), expected at least \(max(cut.beyond, 0))"
            )
        }
        try checkDelta(after: cut.beyond > .none ? cut.beyond : after)
        try checkDelta(after: after)
    }

    private func checkDelta(after: Seq) throws(ReelError) {
        guard after <= seq else {
            throw ReelError(.badRange, "found a delta wanted after seq \(after), expected at most \(seq)")
        }
        guard after >= horizon else {
            throw ReelError(
                .truncated,
                "found a delta wanted after seq \(after), expected at least the horizon, \(horizon)"
            )
        }
    }
}
