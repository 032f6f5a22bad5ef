/// A text that several sites edit: every scalar that somebody may still see, in one list.
///
/// Nothing is ever moved. An insertion puts new elements into the list, a deletion only marks; who sees which of them
/// follows from the numbers of the events alone, and so everybody comes to the same list.
struct SharedText: Sendable {
    struct Element: Sendable {
        let scalar: Unicode.Scalar
        var inserter: Stamp
        var deleters: [Stamp]
    }

    var elements: [Element]

    /// A text that was written plainly, whole, by one writer.
    init(_ text: Text, by writer: Stamp) {
        elements = text.string.unicodeScalars.map { Element(scalar: $0, inserter: writer, deleters: []) }
    }

    init(_ elements: [Element]) {
        self.elements = elements
    }

    /// The text as it is now, to one who knows all.
    var visible: Text {
        var string = String.UnicodeScalarView()
        for element in elements where element.deleters.isEmpty { string.append(element.scalar) }
        return Text(String(string))
    }
}

/// One who edits with the knowledge of an event's author: of all up to `base`, and of all that is his own.
struct Author: Sendable {
    let site: Site
    let base: Int64

    func sees(_ stamp: Stamp) -> Bool {
        stamp.seq <= base || stamp.site == site
    }

    /// Whether this element stands in the text that the author had before him.
    func sees(_ element: SharedText.Element) -> Bool {
        sees(element.inserter) && !element.deleters.contains { sees($0) }
    }
}

extension SharedText {
    /// How many scalars the author sees.
    func length(to author: Author) -> Int {
        elements.count { author.sees($0) }
    }

    /// Removes and inserts where the author means it. Offset and count lie within what he sees.
    mutating func splice(_ triple: Triple, by author: Author, as stamp: Stamp) {
        // Directly behind the last element counted before the offset; before everything where there is none.
        var place = 0
        var counted = 0
        while counted < triple.offset {
            if author.sees(elements[place]) { counted += 1 }
            place += 1
        }
        var index = place
        var removed = 0
        while removed < triple.removed {
            if author.sees(elements[index]) {
                elements[index].deleters.append(stamp)
                removed += 1
            }
            index += 1
        }
        elements.insert(
            contentsOf: triple.text.map { Element(scalar: $0, inserter: stamp, deleters: []) },
            at: place
        )
    }

    /// Drops what nobody can see any more, now that everybody who may still splice knows all up to `horizon`.
    mutating func forget(upTo horizon: Int64) {
        elements.removeAll { $0.deleters.contains { $0.seq <= horizon } }
    }
}
