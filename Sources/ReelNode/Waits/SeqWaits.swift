public import ReelCore

/// A set of waits for a seq, each with or without a deadline. Two heaps order the waits by seq and by deadline, so a
/// batch or a timer visits only the waits that end. A million waits for a seq that never comes cost no time until their
/// deadlines.
public struct SeqWaits<Waiter> {
    /// Names a wait, so that it can be given up.
    public struct Ticket: Hashable, Sendable {
        fileprivate let number: Int
    }

    fileprivate struct Wait {
        var seq: Seq
        var untilMs: Int64?
        var waiter: Waiter
    }

    private var waits: [Int: Wait] = [:]
    private var bySeq = NumberHeap()
    private var byDeadline = NumberHeap()
    private var lastNumber = 0

    /// Nobody waits yet.
    public init() {}

    /// Whether nobody waits.
    public var isEmpty: Bool { waits.isEmpty }
    /// How many wait.
    public var count: Int { waits.count }
    /// A time before which `due` ends no wait; nil: no wait has a deadline. A wait that has ended may have set it.
    public var nextDeadlineMs: Int64? { waits.isEmpty ? nil : byDeadline.first }

    /// Begins a wait for a seq that ends at a time, in milliseconds of the clock that `due` is asked with; nil: it has
    /// no deadline here.
    @discardableResult
    public mutating func add(_ waiter: Waiter, for seq: Seq, untilMs: Int64? = nil) -> Ticket {
        lastNumber += 1
        waits[lastNumber] = Wait(seq: seq, untilMs: untilMs, waiter: waiter)
        bySeq.push(lastNumber, at: seq)
        if let untilMs { byDeadline.push(lastNumber, at: untilMs) }
        return Ticket(number: lastNumber)
    }

    /// Gives a wait up; nil: it has ended already.
    public mutating func cancel(_ ticket: Ticket) -> Waiter? {
        let wait = waits.removeValue(forKey: ticket.number)
        tidy()
        return wait?.waiter
    }

    /// Ends the waits for this seq and those before it; the lowest seq first.
    public mutating func reached(_ seq: Seq) -> [Waiter] { end(\.bySeq, upTo: seq) }

    /// Ends the waits whose deadline has come; the earliest first.
    public mutating func due(nowMs: Int64) -> [Waiter] { end(\.byDeadline, upTo: nowMs) }

    /// Ends all waits.
    public mutating func removeAll() -> [Waiter] {
        defer { (waits, bySeq, byDeadline) = ([:], NumberHeap(), NumberHeap()) }
        return waits.sorted { $0.key < $1.key }.map(\.value.waiter)
    }

    private mutating func end(_ heap: WritableKeyPath<SeqWaits, NumberHeap>, upTo key: Int64) -> [Waiter] {
        var ended: [Waiter] = []
        while let number = self[keyPath: heap].pop(upTo: key) {
            if let wait = waits.removeValue(forKey: number) { ended.append(wait.waiter) }
        }
        tidy()
        return ended
    }

    /// A wait that has ended stays in the other heap until its turn there. Once most are such, they go.
    private mutating func tidy() {
        let most = 2 * waits.count + 64
        if bySeq.count > most { bySeq = NumberHeap(waits.map { ($0.value.seq, $0.key) }) }
        if byDeadline.count > most {
            byDeadline = NumberHeap(waits.compactMap { wait in wait.value.untilMs.map { ($0, wait.key) } })
        }
    }
}

extension SeqWaits: Sendable where Waiter: Sendable {}
extension SeqWaits.Wait: Sendable where Waiter: Sendable {}

/// A binary heap of numbers, the one with the lowest key first.
private struct NumberHeap: Sendable {
    private var items: [(key: Int64, number: Int)] = []

    init() {}

    init(_ items: [(key: Int64, number: Int)]) {
        // Sorted, they are a heap.
        self.items = items.sorted { $0.key < $1.key }
    }

    var count: Int { items.count }
    /// The lowest key.
    var first: Int64? { items.first?.key }

    mutating func push(_ number: Int, at key: Int64) {
        items.append((key, number))
        var child = items.count - 1
        while child > 0, items[(child - 1) / 2].key > items[child].key {
            items.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    /// Takes the first one out, if its key is at most this.
    mutating func pop(upTo key: Int64) -> Int? {
        guard let first = items.first, first.key <= key else { return nil }
        let last = items.removeLast()
        guard !items.isEmpty else { return first.number }
        items[0] = last
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < items.count {
                if items[child].key < items[least].key { least = child }
            }
            guard least != parent else { return first.number }
            items.swapAt(parent, least)
            parent = least
        }
    }
}
