/// A text that several sites edit: every scalar that somebody may still see, in one list.
///
/// Nothing is ever moved. An insertion puts new elements into the list, a deletion only marks; who sees which of them
/// follows from the numbers of the events alone, and so everybody comes to the same list.
struct SharedText: Sendable {
    struct Element: Sendable {
        let scalar: Unicode.Scalar
        /// The place of its deleters in `deleters`; −1 if there are none.
        fileprivate(set) var deletion: Int32 = -1
        var inserter: Stamp

        init(_ scalar: Unicode.Scalar, by inserter: Stamp) {
            self.scalar = scalar
            self.inserter = inserter
        }

        /// Nobody has deleted it: it stands in the text as it is now, to one who knows all.
        var isVisible: Bool { deletion < 0 }
    }

    var elements: [Element] = []
    /// The deleters of each element that has some, in the order of their events.
    private var deleters: [[Stamp]] = []

    init() {}

    /// A text that was written plainly, whole, by one writer.
    init(_ text: Text, by writer: Stamp) {
        append(text, by: writer, deleters: [])
    }

    /// The text as it is now, to one who knows all.
    var visible: Text {
        var string = String.UnicodeScalarView()
        for element in elements where element.isVisible { string.append(element.scalar) }
        return Text(String(string))
    }

    func deleters(of element: Element) -> [Stamp] {
        element.isVisible ? [] : deleters[Int(element.deletion)]
    }

    mutating func delete(_ index: Int, by stamp: Stamp) {
        if elements[index].isVisible {
            elements[index].deletion = Int32(deleters.count)
            deleters.append([stamp])
        } else {
            deleters[Int(elements[index].deletion)].append(stamp)
        }
    }

    mutating func append(_ text: Text, by inserter: Stamp, deleters: [Stamp]) {
        for scalar in text.string.unicodeScalars {
            elements.append(Element(scalar, by: inserter))
            for deleter in deleters { delete(elements.count - 1, by: deleter) }
        }
    }
}

/// One who edits with the knowledge of an event's author: of all up to `base`, and of all that is his own.
struct Author: Sendable {
    let site: Site
    let base: Int64

    func sees(_ stamp: Stamp) -> Bool {
        stamp.seq <= base || stamp.site == site
    }
}

extension SharedText {
    /// Whether this element stands in the text that the author had before him.
    private func isSeen(_ element: Element, by author: Author) -> Bool {
        author.sees(element.inserter)
            && (element.isVisible || !deleters[Int(element.deletion)].contains { author.sees($0) })
    }

    /// Whether what the author sees is what there is.
    func isWhole(to author: Author) -> Bool {
        elements.allSatisfy { isSeen($0, by: author) == $0.isVisible }
    }

    /// How many scalars the author sees.
    func length(to author: Author) -> Int {
        var length = 0
        for element in elements where isSeen(element, by: author) { length += 1 }
        return length
    }

    /// Removes and inserts where the author means it. Offset and count lie within what he sees.
    mutating func splice(_ triple: Triple, by author: Author, as stamp: Stamp) {
        // Directly behind the last element counted before the offset; before everything where there is none.
        var place = 0
        var counted = 0
        while counted < triple.offset {
            if isSeen(elements[place], by: author) { counted += 1 }
            place += 1
        }
        var index = place
        var removed = 0
        while removed < triple.removed {
            if isSeen(elements[index], by: author) {
                delete(index, by: stamp)
                removed += 1
            }
            index += 1
        }
        elements.insert(contentsOf: triple.text.map { Element($0, by: stamp) }, at: place)
    }

    /// The weight of the text's history: for each deleted element the square of the number of its deleters, and
    /// `Limit.run` for each run but the first. A run is as long as possible. An element that no author can see any more
    /// weighs nothing.
    func weight(above horizon: Int64) -> Int {
        var (sum, runs) = (0, 0)
        var last: (inserter: Stamp, deleters: [Stamp])?
        for element in elements {
            let deleters = deleters(of: element)
            if deleters.contains(where: { $0.seq <= horizon }) || deleters.contains(element.inserter) { continue }
            sum += deleters.count * deleters.count
            let inserter = element.inserter.seq <= horizon ? Stamp(seq: -1, site: .nobody) : element.inserter
            if let last, last == (inserter, deleters) { continue }
            runs += 1
            last = (inserter, deleters)
        }
        return sum + Limit.run * max(0, runs - 1)
    }

    /// Drops what nobody can see any more, now that everybody who may still splice knows all up to `horizon`.
    mutating func forget(upTo horizon: Int64) {
        let text = self
        elements.removeAll { text.deleters(of: $0).contains { $0.seq <= horizon } }
    }

    /// The same text, with all taken out in which two right folds may differ.
    func normalForm(above horizon: Int64) -> SharedText {
        let nobody = Stamp(seq: -1, site: .nobody)
        var normal = SharedText()
        for element in elements {
            let deleters = deleters(of: element).sorted()
            if deleters.contains(where: { $0.seq <= horizon }) { continue }
            // Written and removed by one event: whoever knows the one knows the other.
            if deleters.contains(element.inserter) { continue }
            let inserter = element.inserter.seq <= horizon ? nobody : element.inserter
            normal.append(Text(String(element.scalar)), by: inserter, deleters: deleters)
        }
        return normal
    }
}
