import ReelClient
import ReelCore

/// The events of one site that are not acked yet, in order of op, and what of them goes out next. A pure machine, as
/// far as a client's outbox goes that writes to no disk: open-ended, resent from the first op without an ack.
struct PublishQueue {
    /// An event that waits for its ack.
    struct Entry: Equatable {
        var op: Op
        /// When it was due, in nanoseconds of the monotonic clock: its latency counts from here.
        var dueNs: Int64
        var isAcked = false
    }

    /// What a nack asks for.
    enum Consequence: Equatable {
        /// It was about something that is settled meanwhile.
        case none
        /// Go on sending, at the earliest after so many milliseconds.
        case sendAgain(afterMs: Int64)
        /// No gateway will take it.
        case refused
    }

    /// So many events of one site are handed over and not acked at a time.
    static let window = 4_096

    private var entries: [Entry] = []
    private var first = 0
    private var nextOp: Op = 0
    /// All ops up to here have been handed to the present connection.
    private var sentThrough: Op = -1
    /// The highest op that was ever handed over.
    private(set) var handedOver: Op = -1
    /// The highest op that was acked.
    private(set) var highestAcked: Op = -1
    /// Frames of an older generation have been overtaken: of what this one sends again their nacks say nothing new.
    private(set) var generation: Int64 = 0
    /// What this generation has sent begins here.
    private var generationStart: Op = 0

    /// How many events are not acked, sent or not.
    var unacked: Int { entries.count - first }

    /// When the oldest event that waits was due.
    var oldestDueNs: Int64? { first < entries.count ? entries[first].dueNs : nil }

    /// Adds an event that is due now, or was.
    mutating func add(dueNs: Int64) {
        entries.append(Entry(op: nextOp, dueNs: dueNs))
        nextOp += 1
    }

    /// The next events to hand over, at most so many; empty if there are none, or too many are on their way. What a
    /// client made while it wanted to be offline is due when it is back, `backNs`.
    mutating func next(_ most: Int, backNs: Int64) -> ArraySlice<Entry> {
        guard first < entries.count else { return [] }
        let firstOp = entries[first].op
        let start = max(sentThrough + 1, firstOp)
        let end = min(nextOp, start + Op(most), firstOp + Op(Self.window))
        guard start < end else { return [] }
        sentThrough = end - 1
        for op in max(start, handedOver + 1)..<max(end, handedOver + 1, start) {
            let index = first + Int(op - firstOp)
            entries[index].dueNs = max(entries[index].dueNs, backNs)
        }
        handedOver = max(handedOver, sentThrough)
        return entries[first + Int(start - firstOp)..<first + Int(end - firstOp)]
    }

    /// The op is durable. The entry, if this is news.
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

    /// The op was not taken. `generation`: that of the frame it was in, nil if unknown.
    mutating func nacked(_ op: Op, retryMs: Int64?, generation: Int64?) -> Consequence {
        let isOvertaken = generation ?? self.generation != self.generation && op >= generationStart
        guard let index = index(of: op), !entries[index].isAcked, !isOvertaken else { return .none }
        guard let retryMs else { return .refused }
        // What was handed over before it was taken, and its acks will come: sent again it would be there twice.
        rewind(to: op)
        return .sendAgain(afterMs: retryMs)
    }

    /// In doubt: all goes out again from the first op without an ack.
    mutating func rewind() {
        rewind(to: first < entries.count ? entries[first].op : nextOp)
    }

    /// Another site goes on with what is not acked: its ops begin at 0, and nothing of it was handed over.
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
