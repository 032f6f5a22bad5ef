/// A FIFO of elements that the horizon will pass, oldest first. Callers push in ascending order of seq, or call
/// `sort()` afterwards.
struct AgingQueue<Element: Sendable>: Sendable {
    private var items: [(seq: Seq, element: Element)] = []
    private var head = 0

    mutating func push(_ element: Element, at seq: Seq) {
        items.append((seq, element))
    }

    /// The oldest element, if the horizon has passed it.
    mutating func pop(upTo horizon: Seq) -> (seq: Seq, element: Element)? {
        guard head < items.count, items[head].seq <= horizon else { return nil }
        defer {
            head += 1
            if head * 2 > items.count + 64 {
                items.removeFirst(head)
                head = 0
            }
        }
        return items[head]
    }

    /// Sorts the elements by seq, after pushes out of order.
    mutating func sort() {
        items.removeFirst(head)
        head = 0
        items.sort { $0.seq < $1.seq }
    }
}
