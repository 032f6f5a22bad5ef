/// A FIFO in one array. Taking the first element advances an index; from time to time the free space is removed.
package struct Deque<Element> {
    @usableFromInline var elements: [Element?] = []
    @usableFromInline var start = 0

    @inlinable package init() {}

    /// The number of elements.
    @inlinable package var count: Int { elements.count - start }
    /// True if there is no element.
    @inlinable package var isEmpty: Bool { count == 0 }
    /// The first element; nil: there is none.
    @inlinable package var first: Element? { isEmpty ? nil : elements[start] }
    /// The last element; nil: there is none.
    @inlinable package var last: Element? { isEmpty ? nil : elements[elements.count - 1] }

    /// Adds an element at the end.
    @inlinable package mutating func append(_ element: Element) {
        elements.append(element)
    }

    /// Inserts an element at the front.
    @inlinable package mutating func prepend(_ element: Element) {
        if start > 0 {
            start -= 1
            elements[start] = element
        } else {
            elements.insert(element, at: 0)
        }
    }

    /// Removes and returns the first element; nil: there is none.
    @inlinable package mutating func popFirst() -> Element? {
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
    @inlinable package mutating func removeAll(from index: Int) {
        elements.removeSubrange((start + index)...)
    }
}

extension Deque: RandomAccessCollection {
    @inlinable package var startIndex: Int { 0 }
    @inlinable package var endIndex: Int { count }

    /// The element with `index` elements before it. `index` must be less than `count`.
    @inlinable package subscript(index: Int) -> Element {
        elements[start + index]!
    }
}

extension Deque: Sendable where Element: Sendable {}
