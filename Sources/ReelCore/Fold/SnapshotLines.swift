/// Writes the lines of a snapshot, a delta or a rest. The caller passes the objects: first all of them to name their
/// sites, then each to write its line.
struct SnapshotLines: Sendable {
    /// The head and the sites of the stream. Its objects are not used.
    private let fold: Fold
    private let after: Seq
    /// The cut of the answer that a rest continues; nil: the lines are those of a snapshot or delta.
    private let cut: SnapshotCut?
    private let horizon: Seq
    /// The sites that get a line, in order.
    let listed: [Site]
    /// The sites that the lines name, in no order, until all objects are passed.
    private var names: Set<Site>
    /// All sites that the lines name, in order. `numbers` holds the index of each.
    private var named: [Site] = []
    private var numbers: [Site: Int] = [:]
    /// The site that was named last; the next one is often the same.
    private var latest: Site?

    init(_ fold: Fold, after: Seq, cut: SnapshotCut?) {
        self.fold = fold
        self.after = after
        self.cut = cut
        horizon = fold.horizon
        listed = fold.sites(after: after)
        names = Set(listed)
    }

    /// The seq up to which no object has a line.
    var floor: Seq { min(after, cut?.beyond ?? after) }

    /// Returns true if the object or tombstone has a line.
    func lists(_ object: borrowing FoldedObject) -> Bool {
        guard let cut else { return object.seq > after }
        let isHeld = object.state == .alive && !cut.isPassed(by: object.key)
        return object.seq > (isHeld ? after : cut.beyond)
    }

    // MARK: Sites

    /// Names the sites of an object that has a line.
    mutating func nameSites(of object: FoldedObject) {
        for field in object.fields {
            name(field.writer.site)
            guard let text = history(of: field) else { continue }
            if let written = text.written, written.seq > horizon { name(written.site) }
            text.forEachRun(above: horizon) { run, _ in
                if run.inserted != .ancient { name(run.inserted.site) }
                for mark in run.deleters { name(mark.site) }
            }
        }
    }

    private mutating func name(_ site: Site) {
        guard site != latest else { return }
        latest = site
        names.insert(site)
    }

    /// Numbers the named sites. Called once, after the last object.
    mutating func finishNaming() {
        named = names.sorted()
        names = []
        numbers.reserveCapacity(named.count)
        for (number, site) in named.enumerated() { numbers[site] = number }
    }

    /// Returns the text of a field if its last writer is a splice above the horizon; otherwise nil.
    private func history(of field: FoldedField) -> SplicedText? {
        guard field.writer.seq > horizon, case .text(let text) = field.value else { return nil }
        return text
    }

    // MARK: Lines

    /// Appends the first line, without its line feed.
    func writeFirst(to output: inout [UInt8]) {
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

    /// Appends the last line, without its line feed.
    ///
    /// - Parameters:
    ///   - count: the number of lines between the first and the last.
    ///   - digest: the digest of the state.
    ///   - output: the bytes to append to.
    func writeLast(count: Int, digest: UInt64, to output: inout [UInt8]) {
        output.append(#"{"count":"#)
        output.append(integer: count)
        output.append(#","digest":""#)
        output.append(contentsOf: Hex64.text(digest).utf8)
        output.append(#"","end":true}"#)
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

    /// Appends the line of a site, without its line feed.
    func write(site: Site, to output: inout [UInt8]) {
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

    /// Appends the line of an object or tombstone, without its line feed.
    func write(_ object: FoldedObject, to output: inout [UInt8]) {
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
