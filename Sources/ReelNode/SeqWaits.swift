public import ReelCore

/// A set of waits for a seq, each with or without a deadline. Two heaps order the waits by seq and by deadline, so a
/// batch or a timer visits only the waits that end. A million waits for a seq that never arrives cost no time until
/// their deadlines.
public struct SeqWaits<Waiter> {
    /// An identifier of a wait, for `cancel`.
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

    /// A set without waits.
    public init() {}

    /// True if the set has no waits.
    public var isEmpty: Bool { waits.isEmpty }
    /// The number of waits.
    public var count: Int { waits.count }
    /// A time before which `due` ends no wait; nil: no wait has a deadline. It may be the deadline of a wait that has
    /// ended.
    public var nextDeadlineMs: Int64? { waits.isEmpty ? nil : byDeadline.first }

    /// Adds a wait.
    ///
    /// - Parameters:
    ///   - waiter: The waiter, which is returned when the wait ends.
    ///   - seq: The seq that ends the wait.
    ///   - untilMs: The deadline in milliseconds, by the clock of `due`; nil: no deadline.
    @discardableResult
    public mutating func add(_ waiter: Waiter, for seq: Seq, untilMs: Int64? = nil) -> Ticket {
        lastNumber += 1
        waits[lastNumber] = Wait(seq: seq, untilMs: untilMs, waiter: waiter)
        bySeq.push(lastNumber, at: seq)
        if let untilMs { byDeadline.push(lastNumber, at: untilMs) }
        return Ticket(number: lastNumber)
    }

    /// Cancels a wait; nil: it has already ended.
    public mutating func cancel(_ ticket: Ticket) -> Waiter? {
        let wait = waits.removeValue(forKey: ticket.number)
        tidy()
        return wait?.waiter
    }

    /// Ends the waits for this seq and for lower seqs, and returns them, lowest seq first.
    public mutating func reached(_ seq: Seq) -> [Waiter] { end(\.bySeq, upTo: seq) }

    /// Ends the waits with a deadline at or before `nowMs`, and returns them, earliest deadline first.
    public mutating func due(nowMs: Int64) -> [Waiter] { end(\.byDeadline, upTo: nowMs) }

    /// Ends all waits, and returns them.
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

    /// Removes ended waits from the heaps, where they stay until their turn, once they are the majority.
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

/// A binary heap of numbers, lowest key first.
private struct NumberHeap: Sendable {
    private var items: [(key: Int64, number: Int)] = []

    init() {}

    init(_ items: [(key: Int64, number: Int)]) {
        // A sorted array is a heap.
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

    /// Removes and returns the first number if its key is at most `key`.
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
