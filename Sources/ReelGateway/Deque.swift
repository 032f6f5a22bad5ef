/// A FIFO in one array. Taking the first element advances an index; from time to time the free space is removed.
struct Deque<Element> {
    private var elements: [Element?] = []
    private var start = 0

    init() {}

    /// The number of elements.
    var count: Int { elements.count - start }
    /// True if there is no element.
    var isEmpty: Bool { count == 0 }
    /// The first element; nil: there is none.
    var first: Element? { isEmpty ? nil : elements[start] }
    /// The last element; nil: there is none.
    var last: Element? { isEmpty ? nil : elements[elements.count - 1] }

    /// Adds an element at the end.
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

    /// Removes and returns the first element; nil: there is none.
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
}

extension Deque: RandomAccessCollection {
    var startIndex: Int { 0 }
    var endIndex: Int { count }

    /// The element with `index` elements before it. `index` must be less than `count`.
    subscript(index: Int) -> Element {
        elements[start + index]!
    }
}

extension Deque: Sendable where Element: Sendable {}
