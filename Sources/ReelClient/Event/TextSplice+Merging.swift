// Edits of one text as fewer edits, for the reduction of the queue.
extension [TextSplice] {
    /// Appends an edit, and merges it with the last one if the effect stays the same for every reader.
    mutating func append(merging next: TextSplice) {
        if let last, let both = last.merging(next) { self[count - 1] = both } else { append(next) }
    }
}

extension TextSplice {
    /// Returns one edit with the effect of this edit followed by `next`; nil if there is none.
    ///
    /// The effect includes the place of the text among characters that the author has not seen: a text is inserted
    /// directly after the character before it. So an edit that begins before an inserted text is kept apart from it.
    /// In one edit, the text would move to the other side of characters of other authors.
    fileprivate func merging(_ next: TextSplice) -> TextSplice? {
        guard offset >= 0, removed >= 0, next.offset >= 0, next.removed >= 0 else { return nil }
        let length = Int64(text.unicodeScalars.count)
        let (nextEnd, overflows) = next.offset.addingReportingOverflow(next.removed)
        let (all, isTooMany) = removed.addingReportingOverflow(next.removed)
        guard !overflows, !isTooMany else { return nil }
        if next.offset >= offset, next.offset <= offset + length {
            // `next` begins in the inserted text, and may delete characters after it.
            let inside = Swift.min(next.removed, offset + length - next.offset)
            return text.spliced(next.offset - offset, inside, next.text).map {
                TextSplice(at: offset, removing: all - inside, inserting: $0)
            }
        }
        // `next` deletes up to the place of this deletion, or beyond it.
        guard length == 0, next.offset < offset, nextEnd >= offset else { return nil }
        return TextSplice(at: next.offset, removing: all, inserting: next.text)
    }
}

extension String {
    /// Returns the text after an edit whose offset and length count Unicode scalars; nil if it reaches beyond the text.
    func spliced(_ offset: Int64, _ removed: Int64, _ inserted: String) -> String? {
        let scalars = unicodeScalars
        guard offset >= 0, removed >= 0,
            let start = scalars.index(scalars.startIndex, offsetBy: Int(clamping: offset), limitedBy: scalars.endIndex),
            let end = scalars.index(start, offsetBy: Int(clamping: removed), limitedBy: scalars.endIndex)
        else { return nil }
        var text = self
        text.unicodeScalars.replaceSubrange(start..<end, with: inserted.unicodeScalars)
        return text
    }
}
