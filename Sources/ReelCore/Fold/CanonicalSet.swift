import ReelBase

/// An array that `add` and `remove` keep as a set: sorted by the canonical bytes of its elements, without duplicates.
/// The value keeps the positions of its elements, so that the next change of the same array does not search for them
/// again.
struct CanonicalSet {
    /// The array in canonical JSON; empty before the first `read`.
    private(set) var bytes: [UInt8] = []
    /// The position of each element in `bytes`.
    private var elements: [Slice] = []

    /// Creates a value that holds no set yet.
    init() {}

    /// Creates the set of the elements of `array`, which is canonical JSON.
    private init(array: [UInt8]) {
        bytes = array
        let isSorted = bytes.withUnsafeBytes { Self.locate(in: $0, &elements) }
        if !isSorted { sort() }
    }

    /// Loads the set that a field holds, unless it is loaded already.
    mutating func read(_ value: FieldValue?) {
        let array = if case .plain(let bytes) = value { bytes } else { [ASCII.openBracket, ASCII.closeBracket] }
        let isKnown = array.withUnsafeBytes { array in bytes.withUnsafeBytes { $0.equals(array) } }
        if !isKnown { self = CanonicalSet(array: array) }
    }

    /// Removes elements, then adds elements. Both lists hold slices of `record`, sorted and without duplicates.
    mutating func change(adding: ArraySlice<Slice>, removing: ArraySlice<Slice>, _ record: Bytes) {
        if !removing.isEmpty { replace(removing, record, areKept: false) }
        if !adding.isEmpty { replace(adding, record, areKept: true) }
    }

    /// Copies the set without the elements of `list`. With `areKept`, the copy contains the elements of `list` as well.
    private mutating func replace(_ list: ArraySlice<Slice>, _ record: Bytes, areKept: Bool) {
        var copy = CanonicalSet(openFor: bytes.count, elements.count + list.count)
        bytes.withUnsafeBytes { bytes in
            var next = 0
            for slice in list {
                let element = record[slice]
                let (index, isFound) = find(element, from: next, bytes)
                copy.append(elements[next..<index], of: bytes)
                if areKept { copy.append(element) }
                next = isFound ? index + 1 : index
            }
            copy.append(elements[next...], of: bytes)
        }
        copy.close()
        self = copy
    }

    /// Returns the index of `element`, or the index at which to insert it. The search begins at `start`.
    private func find(_ element: Bytes, from start: Int, _ bytes: Bytes) -> (index: Int, isFound: Bool) {
        elements[start...].sortedIndex { bytes[$0].order(element) }
    }

    private mutating func sort() {
        var sorted = CanonicalSet(openFor: bytes.count, elements.count)
        bytes.withUnsafeBytes { bytes in
            elements.sort { bytes[$0].order(bytes[$1]) < 0 }
            var last: Bytes?
            for element in elements.lazy.map({ bytes[$0] }) where !(last?.equals(element) ?? false) {
                sorted.append(element)
                last = element
            }
        }
        sorted.close()
        self = sorted
    }

    // MARK: Writing

    /// Creates a set that is being written. Elements are appended in order, each followed by a comma, until `close()`.
    private init(openFor bytes: Int, _ elements: Int) {
        self.bytes = [ASCII.openBracket]
        self.bytes.reserveCapacity(bytes)
        self.elements.reserveCapacity(elements)
    }

    private mutating func append(_ element: Bytes) {
        elements.append(Slice(start: bytes.count, count: element.count))
        bytes.append(contentsOf: element)
        bytes.append(ASCII.comma)
    }

    /// Appends elements that are adjacent in `other`.
    private mutating func append(_ run: ArraySlice<Slice>, of other: Bytes) {
        guard let first = run.first, let last = run.last else { return }
        let shift = Int32(bytes.count) - first.start
        let start = elements.count
        elements.append(contentsOf: run)
        for index in start..<elements.count { elements[index].start += shift }
        bytes.append(contentsOf: other[Int(first.start)..<Int(last.start + last.count)])
        bytes.append(ASCII.comma)
    }

    private mutating func close() {
        if !elements.isEmpty { bytes.removeLast() }
        bytes.append(ASCII.closeBracket)
    }

    // MARK: Reading

    /// Finds the elements of an array that is known to be canonical. Returns true if they are sorted and without
    /// duplicates.
    private static func locate(in array: Bytes, _ elements: inout [Slice]) -> Bool {
        var isSorted = true
        var start = 1
        while start < array.count - 1 {
            let end = end(ofValueAt: start, in: array)
            let element = Slice(start: start, count: end - start)
            if let last = elements.last, array[last].order(array[element]) >= 0 { isSorted = false }
            elements.append(element)
            start = end + 1
        }
        return isSorted
    }

    /// Returns the end of a value in an array that is known to be canonical: the index of the comma or bracket after
    /// it.
    private static func end(ofValueAt start: Int, in array: Bytes) -> Int {
        var (depth, next) = (0, start)
        repeat {
            switch array[next] {
            case ASCII.quote: next = closingQuote(behind: next, in: array)
            case ASCII.openBracket, ASCII.openBrace: depth += 1
            case ASCII.closeBracket, ASCII.closeBrace: depth -= 1
            default: break
            }
            next += 1
        } while depth > 0 && next < array.count
        // A number or a word has more bytes.
        while next < array.count, array[next] != ASCII.comma, array[next] != ASCII.closeBracket { next += 1 }
        return min(next, array.count)
    }

    private static func closingQuote(behind quote: Int, in array: Bytes) -> Int {
        var next = quote + 1
        while next < array.count, array[next] != ASCII.quote { next += array[next] == ASCII.backslash ? 2 : 1 }
        return next
    }
}
