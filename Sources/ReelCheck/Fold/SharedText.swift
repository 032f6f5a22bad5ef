/// A text that several sites edit. One list holds every scalar that an author may still see.
///
/// No element ever moves. An insertion adds new elements to the list, and a deletion only marks elements. The seqs and
/// sites of the events alone decide which author sees which element, so every fold computes the same list.
struct SharedText: Sendable {
    struct Element: Sendable {
        let scalar: Unicode.Scalar
        /// The index of its deleters in `deleters`; −1 if there are none.
        fileprivate(set) var deletion: Int32 = -1
        var inserter: Stamp

        init(_ scalar: Unicode.Scalar, by inserter: Stamp) {
            self.scalar = scalar
            self.inserter = inserter
        }

        /// True if no event has deleted the element, so that it is part of the current text.
        var isVisible: Bool { deletion < 0 }
    }

    var elements: [Element] = []
    /// The deleters of each deleted element, in the order of their events.
    private var deleters: [[Stamp]] = []

    init() {}

    /// Creates a text that one writer wrote plainly.
    init(_ text: Text, by writer: Stamp) {
        append(text, by: writer, deleters: [])
    }

    /// The current text, with the effects of all events.
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

/// The view that an event's author has of a text: all changes up to `base`, and all changes of the author's own site.
struct Author: Sendable {
    let site: Site
    let base: Int64

    func sees(_ stamp: Stamp) -> Bool {
        stamp.seq <= base || stamp.site == site
    }
}

extension SharedText {
    /// True if the element is in the text as the author saw it.
    private func isSeen(_ element: Element, by author: Author) -> Bool {
        author.sees(element.inserter)
            && (element.isVisible || !deleters[Int(element.deletion)].contains { author.sees($0) })
    }

    /// True if the author sees exactly the current text.
    func isWhole(to author: Author) -> Bool {
        elements.allSatisfy { isSeen($0, by: author) == $0.isVisible }
    }

    /// Returns the number of scalars that the author sees.
    func length(to author: Author) -> Int {
        var length = 0
        for element in elements where isSeen(element, by: author) { length += 1 }
        return length
    }

    /// Removes and inserts at the position that the author means. Offset and count must be inside the text that the
    /// author sees.
    mutating func splice(_ triple: Triple, by author: Author, as stamp: Stamp) {
        // The position is directly after the last element counted before the offset; at the beginning if there is none.
        var position = 0
        var counted = 0
        while counted < triple.offset {
            if isSeen(elements[position], by: author) { counted += 1 }
            position += 1
        }
        var index = position
        var removed = 0
        while removed < triple.removed {
            if isSeen(elements[index], by: author) {
                delete(index, by: stamp)
                removed += 1
            }
            index += 1
        }
        elements.insert(contentsOf: triple.text.map { Element($0, by: stamp) }, at: position)
    }

    /// Returns the weight of the text's history: for each deleted element the square of the number of its deleters,
    /// plus `Limit.run` for each run except the first. Runs are as long as possible. An element that no author can see
    /// any more has no weight.
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

    /// Drops the elements that no author can see any more, after every author that may still splice has read up to
    /// `horizon`.
    mutating func forget(upTo horizon: Int64) {
        let text = self
        elements.removeAll { text.deleters(of: $0).contains { $0.seq <= horizon } }
    }

    /// Returns the same text without everything in which two correct folds may differ.
    func normalForm(above horizon: Int64) -> SharedText {
        let nobody = Stamp(seq: -1, site: .nobody)
        var normal = SharedText()
        for element in elements {
            let deleters = deleters(of: element).sorted()
            if deleters.contains(where: { $0.seq <= horizon }) { continue }
            // One event has inserted and deleted the element, so every author sees both or neither.
            if deleters.contains(element.inserter) { continue }
            let inserter = element.inserter.seq <= horizon ? nobody : element.inserter
            normal.append(Text(String(element.scalar)), by: inserter, deleters: deleters)
        }
        return normal
    }
}
