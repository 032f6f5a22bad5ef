extension FoldDraft {
    /// One step of a splice that is expressed for another base.
    package struct Edit: Equatable, Sendable {
        /// The number of scalars before the position, counted after the preceding steps.
        package var offset: Int64
        /// The number of scalars that are removed after the position.
        package var removed: Int64
        /// The index of the triple with the text to insert; nil if the step inserts no text.
        package var triple: Int?
    }

    /// Rebases a splice: returns steps with the same effect on the text. Their offsets count all events up to
    /// `newBase`. The steps skip elements that other sites have deleted in the meantime. They keep elements that other
    /// sites have inserted.
    ///
    /// Returns nil if the fold would reject the splice at its own base. There are four reasons:
    /// - the base is below the horizon;
    /// - another site wrote the field plainly after the base;
    /// - the field holds no text;
    /// - an offset is beyond the text.
    ///
    /// - Parameters:
    ///   - operation: a splice of `part`.
    ///   - part: the part of `event` that contains the splice.
    ///   - event: the event of the splice.
    ///   - value: the bytes that `event` was parsed from.
    ///   - newBase: a seq at or above the base of the event. All events up to this seq are in the object.
    package func rebased(
        _ operation: ParsedEvent.Operation,
        of part: ParsedEvent.Part,
        in event: ParsedEvent,
        _ value: Bytes,
        to newBase: Seq
    ) -> [Edit]? {
        guard case .splice(let triples) = operation.kind, event.base >= horizon else { return nil }
        let (old, new) = (TextViewer(site: event.site, base: event.base), TextViewer(site: event.site, base: newBase))
        guard var pieces = pieces(of: value[operation.name], part, value, old, new) else { return nil }
        var edits: [Edit] = []
        for (index, triple) in event.triples[triples].enumerated() {
            guard let steps = pieces.edit(triple, index) else { return nil }
            edits += steps
        }
        return edits
    }

    /// Returns the elements of a text as both viewers count them. Returns nil if the splice would be stale for the old
    /// viewer, or if the field holds no text.
    private func pieces(
        of name: Bytes,
        _ part: ParsedEvent.Part,
        _ value: Bytes,
        _ old: TextViewer,
        _ new: TextViewer
    ) -> TextPieces? {
        guard let object = livingObject(model: value[part.model], id: value[part.id]) else { return nil }
        guard let field = object.field(name) else { return TextPieces() }
        if let written = field.written, !old.sees(written) { return nil }
        var pieces = TextPieces()
        switch field.value {
        case .plain(let bytes):
            guard bytes.first == ASCII.quote else { return nil }
            let count = bytes.withUnsafeBytes { JSONText(Bytes(rebasing: $0[1..<$0.count - 1])).scalarCount }
            pieces.append(count, isOld: true, isNew: true)
        case .text(let text):
            text.forEachRun(above: horizon) { run, _ in
                pieces.append(Int(run.scalars), isOld: run.counts(for: old), isNew: run.counts(for: new))
            }
        }
        return pieces
    }
}

/// The elements of a text in document order, as two viewers count them.
private struct TextPieces {
    private struct Piece {
        var scalars: Int
        /// True if the viewer at the old base counts the elements.
        var isOld: Bool
        /// True if the viewer at the new base counts the elements.
        var isNew: Bool
    }

    private var pieces: [Piece] = []

    mutating func append(_ scalars: Int, isOld: Bool, isNew: Bool) {
        guard scalars > 0, isOld || isNew else { return }
        pieces.append(Piece(scalars: scalars, isOld: isOld, isNew: isNew))
    }

    /// Applies a triple, and returns its steps for the new viewer; nil if the triple reaches beyond the text.
    ///
    /// The steps delete from the end to the beginning, so that no step moves the position of the next one.
    mutating func edit(_ triple: ParsedEvent.Triple, _ index: Int) -> [FoldDraft.Edit]? {
        guard let start = cut(at: Int(clamping: triple.offset)) else { return nil }
        var offset = Int64(pieces[..<start].reduce(0) { $0 + ($1.isNew ? $1.scalars : 0) })
        let insertOffset = offset
        var (rest, at) = (Int(clamping: triple.removed), start)
        var steps: [FoldDraft.Edit] = []
        while rest > 0 {
            guard at < pieces.endIndex else { return nil }
            if pieces[at].isOld, pieces[at].scalars > rest { split(at, rest) }
            if pieces[at].isOld {
                rest -= pieces[at].scalars
                if pieces[at].isNew { steps.append(.init(offset: offset, removed: Int64(pieces[at].scalars))) }
                offset += pieces[at].isNew ? Int64(pieces[at].scalars) : 0
                (pieces[at].isOld, pieces[at].isNew) = (false, false)
            } else if pieces[at].isNew {
                offset += Int64(pieces[at].scalars)
            }
            at += 1
        }
        steps.reverse()
        guard triple.scalars > 0 else {
            // Every op names its field as text, even if nothing is left to do.
            return steps.isEmpty ? [.init(offset: insertOffset, removed: 0)] : steps
        }
        pieces.insert(Piece(scalars: Int(triple.scalars), isOld: true, isNew: true), at: start)
        if steps.last?.offset == insertOffset {
            steps[steps.count - 1].triple = index
        } else {
            steps.append(.init(offset: insertOffset, removed: 0, triple: index))
        }
        return steps
    }

    /// Returns the index of the piece that begins directly after the first `offset` elements of the old viewer. Returns
    /// nil if there are fewer elements.
    private mutating func cut(at offset: Int) -> Int? {
        if offset == 0 { return 0 }
        var rest = offset
        for index in pieces.indices where pieces[index].isOld {
            if pieces[index].scalars > rest { split(index, rest) }
            rest -= pieces[index].scalars
            if rest == 0 { return index + 1 }
        }
        return nil
    }

    private mutating func split(_ index: Int, _ scalars: Int) {
        var tail = pieces[index]
        tail.scalars -= scalars
        pieces[index].scalars = scalars
        pieces.insert(tail, at: index + 1)
    }
}
