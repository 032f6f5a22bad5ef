/// A FIFO in one array. Taking the first element advances an index; from time to time the free space is removed.
struct Queue<Element> {
    private var elements: [Element?] = []
    private var start = 0

    var count: Int { elements.count - start }
    var isEmpty: Bool { count == 0 }
    var first: Element? { isEmpty ? nil : elements[start] }
    var last: Element? { isEmpty ? nil : elements[elements.count - 1] }

    /// The element with `index` elements before it. `index` must be less than `count`.
    subscript(index: Int) -> Element {
        elements[start + index]!
    }

    mutating func append(_ element: Element) {
        elements.append(element)
    }

    /// Inserts an element at the front.
    mutating func prepend(_ element: Element) {
        if start > 0 {
            start -= 1
            elements[start] = element
        } else {
            elements.insert(element, at: 0)
        }
    }

    mutating func popFirst() -> Element? {
        guard start < elements.count else { return nil }
        let element = elements[start]
        elements[start] = nil
        start += 1
        if start >= 64, start * 2 >= elements.count {
            elements.removeFirst(start)
            start = 0
        }
        return element
    }

    /// Removes the element at this index and all elements after it.
    mutating func removeAll(from index: Int) {
        elements.removeSubrange((start + index)...)
    }

    /// Returns the first index with an element that does not satisfy the condition, by binary search. The elements
    /// before it must satisfy the condition, and no others.
    func partition(where isBefore: (Element) -> Bool) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if isBefore(self[middle]) { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
