/// Produces the lines of a snapshot, a delta or a rest one at a time: the first line, sites, objects, tombstones, the
/// last line.
///
/// The writer holds the state at the time of its creation; the fold may change in the meantime.
public struct SnapshotWriter: Sendable {
    private enum Step {
        case first, body, last, done
    }

    private let fold: Fold
    private let after: Seq
    /// The cut of the answer that a rest continues; nil: the lines are those of a snapshot or delta.
    private let cut: SnapshotCut?
    private let digest: UInt64
    private let horizon: Seq
    /// All sites that the lines name, in order. `numbers` holds the index of each.
    private var named: [Site] = []
    private var numbers: [Site: Int] = [:]
    private let listed: [Site]
    private let slots: [Int]
    private var step = Step.first
    private var line = 0

    init(_ fold: Fold, after: Seq, cut: SnapshotCut? = nil, digest: UInt64) {
        self.fold = fold
        self.after = after
        self.cut = cut
        self.digest = digest
        horizon = fold.horizon
        listed = fold.sites(after: after)
        slots = cut.map { fold.slots(after: after, beyond: $0) } ?? fold.slots(after: after)
        nameSites()
    }

    /// The number of lines between the first and the last.
    public var count: Int { listed.count + slots.count }

    /// Appends the next line with its line feed. Returns false after the last line.
    public mutating func next(into output: inout [UInt8]) -> Bool {
        switch step {
        case .done: return false
        case .first:
            writeFirst(to: &output)
            step = count > 0 ? .body : .last
        case .body:
            if line < listed.count {
                write(site: listed[line], to: &output)
            } else {
                write(fold.objects[slots[line - listed.count]], to: &output)
            }
            line += 1
            if line == count { step = .last }
        case .last:
            output.append(#"{"count":"#)
            output.append(integer: count)
            output.append(#","digest":""#)
            output.append(contentsOf: Hex64.text(digest).utf8)
            output.append(#"","end":true}"#)
            step = .done
        }
        output.append(UInt8(ascii: "\n"))
        return true
    }

    /// Appends all remaining lines.
    public mutating func writeAll(to output: inout [UInt8]) {
        while next(into: &output) {}
    }

    // MARK: Sites

    private mutating func nameSites() {
        var names = Set(listed)
        var latest: Site?
        func name(_ site: Site) {
            guard site != latest else { return }
            latest = site
            names.insert(site)
        }
        for slot in slots {
            for field in fold.objects[slot].fields {
                name(field.writer.site)
                guard let text = history(of: field) else { continue }
                if let written = text.written, written.seq > horizon { name(written.site) }
                text.forEachRun(above: horizon) { run, _ in
                    if run.inserted != .ancient { name(run.inserted.site) }
                    for mark in run.deleters { name(mark.site) }
                }
            }
        }
        named = names.sorted()
        numbers.reserveCapacity(named.count)
        for (number, site) in named.enumerated() { numbers[site] = number }
    }

    /// Returns the text of a field if its last writer is a splice above the horizon; otherwise nil.
    private func history(of field: FoldedField) -> SplicedText? {
        guard field.writer.seq > horizon, case .text(let text) = field.value else { return nil }
        return text
    }

    // MARK: Lines

    private func writeFirst(to output: inout [UInt8]) {
        output.append(#"{"after":"#)
        output.append(integer: after)
        if let cut { write(cut, to: &output) }
        output.append(#","consumed":"#)
        output.append(integer: fold.consumed)
        output.append(#","epoch":""#)
        output.append(contentsOf: fold.epoch.description.utf8)
        output.append(#"","fold":"#)
        output.append(integer: Fold.version)
        output.append(#","marks":["#)
        for (index, mark) in fold.marks.enumerated() {
            if index > 0 { output.append(ASCII.comma) }
            output.append(integer: mark)
        }
        output.append("]")
        if let next = fold.next {
            output.append(#","next":""#)
            output.append(contentsOf: next.description.utf8)
            output.append("\"")
        }
        output.append(#","partition":"#)
        output.append(integer: fold.partition)
        if fold.retired > .none {
            output.append(#","retired":"#)
            output.append(integer: fold.retired)
        }
        output.append(#","seq":"#)
        output.append(integer: fold.seq)
        output.append(#","sites":["#)
        for (index, site) in named.enumerated() {
            if index > 0 { output.append(ASCII.comma) }
            output.append(quoted: site)
        }
        output.append(#"],"stream":""#)
        output.append(contentsOf: fold.stream.description.utf8)
        output.append(#""}"#)
    }

    private func write(_ cut: SnapshotCut, to output: inout [UInt8]) {
        output.append(#","beyond":["#)
        Fold.split(cut.key) { model, id in
            for part in [model, id] {
                output.append(ASCII.quote)
                output.append(contentsOf: part)
                output.append(#"","#)
            }
        }
        output.append(integer: cut.beyond)
        output.append("]")
    }

    private func write(site: Site, to output: inout [UInt8]) {
        guard let state = fold.sites[site] else { return }
        output.append("{")
        if let by = state.by {
            output.append(#""by":""#)
            output.append(contentsOf: by)
            output.append(#"","#)
        }
        output.append(#""end":"#)
        output.append(integer: state.end)
        if state.lost.count > 0 { write(state.lost, to: &output) }
        output.append(#","op":"#)
        output.append(integer: state.op)
        output.append(#","r":"#)
        output.append(integer: state.lost.all)
        output.append(#","seq":"#)
        output.append(integer: state.seq)
        output.append(#","site":"#)
        append(site, to: &output)
        output.append("}")
    }

    private func write(_ lost: LostTexts, to output: inout [UInt8]) {
        output.append(#","lost":["#)
        for (index, field) in lost.fields.enumerated() {
            if index > 0 { output.append(ASCII.comma) }
            output.append("[")
            field.split { model, id, name in
                for part in [model, id, name] {
                    output.append(ASCII.quote)
                    output.append(contentsOf: part)
                    output.append(#"","#)
                }
            }
            output.append(integer: field.seq)
            output.append("]")
        }
        output.append("]")
    }

    private func write(_ object: FoldedObject, to output: inout [UInt8]) {
        guard object.state == .alive else {
            output.append(#"{"deleted":"#)
            writeName(of: object, to: &output)
            return
        }
        output.append(#"{"fields":{"#)
        for (index, field) in object.fields.enumerated() {
            if index > 0 { output.append(ASCII.comma) }
            write(field, to: &output)
        }
        output.append(#"},"object":"#)
        writeName(of: object, to: &output)
    }

    private func writeName(of object: FoldedObject, to output: inout [UInt8]) {
        output.append("[\"")
        output.append(contentsOf: object.model)
        output.append(#"",""#)
        output.append(contentsOf: object.id)
        output.append(#""],"seq":"#)
        output.append(integer: object.seq)
        output.append("}")
    }

    private func write(_ field: FoldedField, to output: inout [UInt8]) {
        output.append(ASCII.quote)
        output.append(contentsOf: field.name)
        output.append("\":[")
        field.writeValue(to: &output)
        output.append(ASCII.comma)
        append(field.writer, to: &output)
        if let text = history(of: field) {
            output.append(",[")
            var isFirst = true
            text.forEachRun(above: horizon) { run, bytes in
                if !isFirst { output.append(ASCII.comma) }
                isFirst = false
                write(run, bytes, of: field, to: &output)
            }
            output.append("]")
            if let written = text.written, written.seq > horizon {
                output.append(",[")
                append(written, to: &output)
                output.append("]")
            }
        }
        output.append("]")
    }

    private func write(_ run: borrowing TextRun, _ text: Bytes, of field: FoldedField, to output: inout [UInt8]) {
        output.append("[\"")
        output.append(contentsOf: text)
        output.append("\",")
        // A run that every viewer sees has no history. Any seq at or below the horizon expresses that.
        let ancient = TextMark(seq: horizon, site: field.writer.site)
        append(run.inserted == .ancient ? ancient : run.inserted, to: &output)
        if run.isDeleted {
            output.append(",[")
            for (index, mark) in run.deleters.enumerated() {
                output.append(index == 0 ? "[" : ",[")
                append(mark, to: &output)
                output.append("]")
            }
            output.append("]")
        }
        output.append("]")
    }

    /// Appends a seq and the number of a site.
    private func append(_ mark: TextMark, to output: inout [UInt8]) {
        output.append(integer: mark.seq)
        output.append(ASCII.comma)
        append(mark.site, to: &output)
    }

    private func append(_ site: Site, to output: inout [UInt8]) {
        output.append(integer: numbers[site] ?? 0)
    }
}

extension Fold {
    /// Returns a writer of the current state as lines: a snapshot, or a delta if `after` ≥ 0.
    ///
    /// A delta contains the changes after the seq `after`. It can be applied to a fold with a seq between `after` and
    /// `seq`.
    /// - Throws: `truncated` if `after` is below the horizon; `bad_range` if `after` is above `seq`.
    public mutating func snapshot(after: Seq = .none) throws(ReelError) -> SnapshotWriter {
        if after > .none { try checkDelta(after: after) }
        return SnapshotWriter(self, after: max(after, .none), digest: digest())
    }

    /// Returns a writer of the rest of an answer that was cut, as lines.
    ///
    /// The rest contains the changes after the seq `after`, and beyond the cut the changes after `cut.beyond`. It can
    /// be applied to a state that is as of `after` or later up to the cut, and as of `cut.beyond` or later beyond it.
    /// - Throws: `truncated` if a tombstone may be missing: `cut.beyond` is below the horizon, or `after` is if the
    ///   reader holds nothing beyond the cut. `bad_range` if `cut.beyond` is above `after`, or `after` above `seq`.
    public mutating func rest(after: Seq, beyond cut: SnapshotCut) throws(ReelError) -> SnapshotWriter {
        guard after > .none, cut.beyond <= after else {
            throw ReelError(
                .badRange,
                "found a rest wanted after seq \(after), expected at least \(max(cut.beyond, 0))"
            )
        }
        try checkDelta(after: cut.beyond > .none ? cut.beyond : after)
        try checkDelta(after: after)
        return SnapshotWriter(self, after: after, cut: cut, digest: digest())
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

    /// Returns the slots of the objects and tombstones of a rest, in the order of its lines.
    fileprivate func slots(after: Seq, beyond cut: SnapshotCut) -> [Int] {
        slots(after: min(after, cut.beyond)).filter { slot in
            let isHeld = isAlive(at: slot) && !cut.isPassed(by: objects[slot].key)
            return objects[slot].seq > (isHeld ? after : cut.beyond)
        }
    }
}
