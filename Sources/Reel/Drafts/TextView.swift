/// The text that a text view shows, with its selection. Places count UTF-16 code units.
///
/// A Swift string finds a place by its UTF-16 offset in constant time only if an index of the text exists, and each
/// edit removes that index. So the text remembers two places, those of the last own edit and of the last edit of
/// another author, and finds others from the nearest one. Only a jump to a distant place makes the index again.
struct TextView: DraftView {
    private struct Place {
        var unit = 0
        var utf16 = 0
    }

    private(set) var text: String
    private(set) var utf16Count: Int
    private var selected = 0..<0
    private var own = Place()
    private var other = Place()

    init(_ text: String) {
        (self.text, utf16Count) = (text, text.utf16.count)
    }

    var end: Int { utf16Count }

    /// The selected part. It begins and ends at borders of grapheme clusters.
    var selection: Range<Int> {
        get { selected }
        set { selected = clusters(newValue.clamped(to: 0..<utf16Count)) }
    }

    // MARK: Edits

    /// Performs an own edit. Nil if the range is not in the text, or splits a scalar.
    ///
    /// - Parameters:
    ///   - range: the part that is replaced.
    ///   - new: the text that replaces it.
    /// - Returns: The same edit, as a replacement of whole grapheme clusters of the text before it.
    mutating func replace(_ range: Range<Int>, with new: String) -> Patch<String>.Hunk? {
        guard range.lowerBound >= 0, range.upperBound <= utf16Count else { return nil }
        guard let start = unit(at: range.lowerBound), let end = unit(at: range.upperBound) else { return nil }
        if start == end, new.isEmpty { return Patch.Hunk(start: start, removed: 0, inserted: "") }
        let (first, last) = (text.clusterOffset(notAfter: start), text.clusterOffset(notBefore: end))
        let inserted = text.part(first..<start) + new + text.part(end..<last)
        edit(start..<end, range, with: new)
        own = Place(unit: start + new.utf8.count, utf16: range.lowerBound + new.utf16.count)
        selection = own.utf16..<own.utf16
        return Patch.Hunk(start: first, removed: last - first, inserted: inserted)
    }

    mutating func perform(_ hunk: Patch<String>.Hunk) -> TextDraft.Change {
        let lower = utf16(at: hunk.start)
        let upper = utf16(at: hunk.end)
        edit(hunk.start..<hunk.end, lower..<upper, with: hunk.inserted)
        let count = hunk.inserted.utf16.count
        other = Place(unit: hunk.start + hunk.inserted.utf8.count, utf16: lower + count)
        own = Place(
            unit: Self.moved(own.unit, hunk.start..<hunk.end, hunk.inserted.utf8.count),
            utf16: Self.moved(own.utf16, lower..<upper, count)
        )
        select(lower..<upper, count)
        return TextDraft.Change(utf16: lower..<upper, text: hunk.inserted)
    }

    private mutating func edit(_ units: Range<Int>, _ utf16: Range<Int>, with new: String) {
        text.replaceUnits(units, with: new)
        let count = new.utf16.count
        utf16Count += count - utf16.count
        other = Place(
            unit: Self.moved(other.unit, units, new.utf8.count),
            utf16: Self.moved(other.utf16, utf16, count)
        )
    }

    /// Returns a place after a replacement. A place inside the replaced part moves to the start of that part.
    private static func moved(_ place: Int, _ replaced: Range<Int>, _ count: Int) -> Int {
        if place >= replaced.upperBound, place > replaced.lowerBound { return place + count - replaced.count }
        return min(place, replaced.lowerBound)
    }

    // MARK: Selection

    /// Moves the selection over an edit of another author. What the author inserts at an end of the selection stays
    /// outside of it.
    private mutating func select(_ replaced: Range<Int>, _ count: Int) {
        func inside(_ place: Int) -> Int { replaced.lowerBound + min(place - replaced.lowerBound, count) }
        func start(_ place: Int) -> Int {
            if place >= replaced.upperBound { return place + count - replaced.count }
            return place <= replaced.lowerBound ? place : inside(place)
        }
        func end(_ place: Int) -> Int {
            if place <= replaced.lowerBound { return place }
            return place >= replaced.upperBound ? place + count - replaced.count : inside(place)
        }
        let upper = end(selected.upperBound)
        let lower = selected.isEmpty ? upper : min(start(selected.lowerBound), upper)
        selection = lower..<upper
    }

    /// Returns the smallest range of whole clusters that contains a range of the text. An empty range stays empty.
    private func clusters(_ range: Range<Int>) -> Range<Int> {
        let start = text.clusterBoundary(notAfter: index(at: range.lowerBound))
        let lower = utf16(at: text.utf8.distance(from: text.startIndex, to: start))
        if range.isEmpty { return lower..<lower }
        let end = text.clusterBoundary(notBefore: index(at: range.upperBound))
        return lower..<utf16(at: text.utf8.distance(from: text.startIndex, to: end))
    }

    // MARK: Places

    /// Returns the place in UTF-8 of a place in UTF-16; nil if it splits a scalar.
    private func unit(at offset: Int) -> Int? {
        let index = index(at: offset)
        guard index.samePosition(in: text.unicodeScalars) != nil else { return nil }
        return text.utf8.distance(from: text.startIndex, to: index)
    }

    private func index(at offset: Int) -> String.Index {
        let near = nearest { $0.utf16 - offset }
        return text.utf16.index(text.index(ofUnit: near.unit), offsetBy: offset - near.utf16)
    }

    /// Returns the place in UTF-16 of a place in UTF-8.
    private func utf16(at unit: Int) -> Int {
        let near = nearest { $0.unit - unit }
        return near.utf16 + text.utf16.distance(from: text.index(ofUnit: near.unit), to: text.index(ofUnit: unit))
    }

    private func nearest(_ distance: (Place) -> Int) -> Place {
        let start = Place()
        let end = Place(unit: text.utf8.count, utf16: utf16Count)
        var best = own
        for place in [other, start, end] where abs(distance(place)) < abs(distance(best)) { best = place }
        return best
    }
}
