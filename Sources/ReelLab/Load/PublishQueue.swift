import ReelClient
import ReelCore

/// The unacked events of one site, in order of op, and the choice of those to send next. A pure state machine. It
/// behaves like a client's outbox without a disk: it is unbounded, and sends again from the first op without an ack.
struct PublishQueue {
    /// An event that waits for its ack.
    struct Entry: Equatable {
        var op: Op
        /// The time at which the event was due, in nanoseconds of the monotonic clock. Its latency counts from here.
        var dueNs: Int64
        var isAcked = false
    }

    /// The consequence of a nack.
    enum Consequence: Equatable {
        /// Nothing: the nack is about something that is settled meanwhile.
        case none
        /// Continue sending, after `afterMs` milliseconds at the earliest.
        case sendAgain(afterMs: Int64)
        /// The event is refused: no gateway will accept it.
        case refused
    }

    /// The maximum number of events of one site that are handed over and not acked.
    static let window = 4_096

    private var entries: [Entry] = []
    private var first = 0
    private var nextOp: Op = 0
    /// The op up to which all events were handed to the present connection.
    private var sentThrough: Op = -1
    /// The highest op that was ever handed over.
    private(set) var handedOver: Op = -1
    /// The highest op that was acked.
    private(set) var highestAcked: Op = -1
    /// The number of restarts of sending. A nack of a frame from an older generation says nothing new about events that
    /// this generation sends again.
    private(set) var generation: Int64 = 0
    /// The first op that this generation has sent.
    private var generationStart: Op = 0

    /// The number of events that are not acked, sent or not.
    var unacked: Int { entries.count - first }

    /// The time at which the oldest waiting event was due; nil if none waits.
    var oldestDueNs: Int64? { first < entries.count ? entries[first].dueNs : nil }

    /// Adds an event with the time at which it is due.
    mutating func add(dueNs: Int64) {
        entries.append(Entry(op: nextOp, dueNs: dueNs))
        nextOp += 1
    }

    /// Returns the next events to hand over, at most `countMax`. Returns an empty list if there are none, or too many
    /// are unacked. `backNs`: the end of the planned offline time. Events created during that time count as due at its
    /// end.
    mutating func next(_ countMax: Int, backNs: Int64) -> ArraySlice<Entry> {
        guard first < entries.count else { return [] }
        let firstOp = entries[first].op
        let start = max(sentThrough + 1, firstOp)
        let end = min(nextOp, start + Op(countMax), firstOp + Op(Self.window))
        guard start < end else { return [] }
        sentThrough = end - 1
        for op in max(start, handedOver + 1)..<max(end, handedOver + 1, start) {
            let index = first + Int(op - firstOp)
            entries[index].dueNs = max(entries[index].dueNs, backNs)
        }
        handedOver = max(handedOver, sentThrough)
        return entries[first + Int(start - firstOp)..<first + Int(end - firstOp)]
    }

    /// Marks an op as durable. Returns its entry if it was not acked before.
    mutating func acked(_ op: Op) -> Entry? {
        guard let index = index(of: op), !entries[index].isAcked else { return nil }
        entries[index].isAcked = true
        highestAcked = max(highestAcked, op)
        let entry = entries[index]
        while first < entries.count, entries[first].isAcked { first += 1 }
        if first > 4_096, first * 2 > entries.count {
            entries.removeFirst(first)
            first = 0
        }
        return entry
    }

    /// Called when an op was not accepted. `generation`: the generation of its frame, nil if unknown.
    mutating func nacked(_ op: Op, retryMs: Int64?, generation: Int64?) -> Consequence {
        let isOvertaken = generation ?? self.generation != self.generation && op >= generationStart
        guard let index = index(of: op), !entries[index].isAcked, !isOvertaken else { return .none }
        guard let retryMs else { return .refused }
        // Events before this op were accepted, and their acks will arrive. If they were sent again, they would be in
        // the log twice.
        rewind(to: op)
        return .sendAgain(afterMs: retryMs)
    }

    /// Restarts sending at the first op without an ack, because the outcome of the rest is unknown.
    mutating func rewind() {
        rewind(to: first < entries.count ? entries[first].op : nextOp)
    }

    /// Moves the unacked events to another site: their ops begin at 0, and none was handed over.
    mutating func restart() {
        entries = entries[first...].filter { !$0.isAcked }
        for index in entries.indices { entries[index].op = Op(index) }
        (first, nextOp, handedOver, highestAcked) = (0, Op(entries.count), -1, -1)
        rewind(to: 0)
    }

    private mutating func rewind(to op: Op) {
        generation += 1
        generationStart = op
        sentThrough = op - 1
    }

    private func index(of op: Op) -> Int? {
        guard first < entries.count, op >= entries[first].op, op < nextOp else { return nil }
        return first + Int(op - entries[first].op)
    }
}
