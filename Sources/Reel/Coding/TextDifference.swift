internal import ReelClient

/// The difference of two texts as splices, whose offsets count Unicode scalars.
enum TextDifference {
    /// Returns the splices that have the effect of an edit. No splice begins or ends inside a grapheme cluster.
    ///
    /// - Parameters:
    ///   - old: the text before the edit.
    ///   - new: the text after the edit.
    ///   - present: the text on which the splices are performed. If it differs from `old`, the edit is moved over the
    ///     difference: both edits stay.
    static func splices(from old: String, to new: String, in present: String) -> [TextSplice] {
        guard let edit = Edit(from: old, to: new) else { return [] }
        guard let other = Edit(from: old, to: present) else {
            return [TextSplice(at: edit.scalars.start, removing: edit.scalars.removed, inserting: edit.text)]
        }
        var text = present
        var splices: [TextSplice] = []
        for part in edit.scalars.rebased(over: other.scalars) {
            let inserted = part.inserts ? edit.text : ""
            let scalars = text.unicodeScalars
            let from = scalars.index(text.startIndex, offsetBy: part.start, limitedBy: text.endIndex) ?? text.endIndex
            let to = scalars.index(from, offsetBy: part.removed, limitedBy: text.endIndex) ?? text.endIndex
            // Clusters that another writer has made across the ends of the edit stay.
            let start = text.clusterBoundary(notBefore: from)
            let end = max(start, text.clusterBoundary(notAfter: to))
            guard start < end || !inserted.isEmpty else { continue }
            let offset = scalars.distance(from: text.startIndex, to: start)
            let removed = scalars.distance(from: start, to: end)
            splices.append(TextSplice(at: offset, removing: removed, inserting: inserted))
            text.unicodeScalars.replaceSubrange(start..<end, with: inserted.unicodeScalars)
        }
        return splices
    }

    /// The smallest replacement between two texts that splits no grapheme cluster of either.
    private struct Edit {
        var scalars: Replacement
        /// The inserted text.
        var text: String

        /// Creates the edit. Nil if both texts have the same bytes.
        init?(from old: String, to new: String) {
            guard let bytes = changedBytes(from: old, to: new) else { return nil }
            let oldStart = old.utf8.index(old.startIndex, offsetBy: bytes.start)
            let oldEnd = old.utf8.index(oldStart, offsetBy: bytes.removed)
            let newStart = new.utf8.index(new.startIndex, offsetBy: bytes.start)
            let newEnd = new.utf8.index(newStart, offsetBy: bytes.inserted)
            text = String(new[newStart..<newEnd])
            scalars = Replacement(
                start: old.unicodeScalars.distance(from: old.startIndex, to: oldStart),
                removed: old.unicodeScalars.distance(from: oldStart, to: oldEnd),
                inserted: text.unicodeScalars.count
            )
        }
    }

    /// Returns the smallest replacement of bytes between two texts that splits no grapheme cluster of either. Nil if
    /// both texts have the same bytes.
    ///
    /// - Parameters:
    ///   - old: the text before the edit.
    ///   - new: the text after the edit.
    static func changedBytes(from old: String, to new: String) -> Replacement? {
        var (old, new) = (old, new)
        var prefix = old.withUTF8 { old in new.withUTF8 { Replacement.commonPrefix(old, $0) } }
        let (oldBytes, newBytes) = (old.utf8.count, new.utf8.count)
        if prefix == oldBytes, prefix == newBytes { return nil }
        // The scalar after the prefix is the same in both texts once the prefix was shortened. So a second round finds
        // the same place in both.
        for _ in 0..<2 {
            prefix = old.clusterOffset(notAfter: prefix)
            prefix = new.clusterOffset(notAfter: prefix)
        }
        let start = prefix
        var suffix = old.withUTF8 { old in new.withUTF8 { Replacement.commonSuffix(old, $0, after: start) } }
        // The boundaries in a long row of flags depend on its beginning. If they do not meet, the rest is replaced.
        for round in 0... {
            let shorter = oldBytes - old.clusterOffset(notBefore: oldBytes - suffix)
            let both = newBytes - new.clusterOffset(notBefore: newBytes - shorter)
            if both == suffix { break }
            suffix = round < 8 ? both : 0
        }
        return Replacement(start: start, removed: oldBytes - start - suffix, inserted: newBytes - start - suffix)
    }
}

extension String {
    /// Returns the last boundary of a grapheme cluster at or before an index.
    func clusterBoundary(notAfter index: Index) -> Index {
        index == endIndex ? index : self.index(before: self.index(after: index))
    }

    /// Returns the first boundary of a grapheme cluster at or after an index.
    func clusterBoundary(notBefore index: Index) -> Index {
        let before = clusterBoundary(notAfter: index)
        return before == index ? index : self.index(after: before)
    }

    /// Returns the last boundary of a grapheme cluster at or before an offset in bytes.
    func clusterOffset(notAfter offset: Int) -> Int {
        let index = clusterBoundary(notAfter: utf8.index(startIndex, offsetBy: offset))
        return utf8.distance(from: startIndex, to: index)
    }

    /// Returns the first boundary of a grapheme cluster at or after an offset in bytes.
    func clusterOffset(notBefore offset: Int) -> Int {
        let index = clusterBoundary(notBefore: utf8.index(startIndex, offsetBy: offset))
        return utf8.distance(from: startIndex, to: index)
    }
}
