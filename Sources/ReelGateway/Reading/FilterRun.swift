import ReelCore
import ReelNode

/// A filter at work on one piece. The work per piece is limited, so that the loop does other work in between.
struct FilterRun {
    /// The answer for an event.
    enum Verdict {
        case wanted
        case leftOut
        /// The piece has taken all the work that it may: it ends before this event.
        case exhausted
    }

    /// The maximum work per piece. An event counts as one, plus one for each 256 bytes and for each 8 parts of it.
    private static let workMax = 1_024

    private let filter: EventFilter?
    private var work = 0
    private var event = ParsedEvent()

    init(_ filter: EventFilter?) {
        self.filter = filter
    }

    /// Returns the answer for an event.
    mutating func look(at value: Bytes) -> Verdict {
        guard let filter else { return .wanted }
        guard work < Self.workMax else { return .exhausted }
        let isWanted = filter.wants(value, &event)
        work += 1 + value.count / 256 + event.parts.count / 8
        return isWanted ? .wanted : .leftOut
    }
}

extension EventRangeBuilder {
    /// Adds the next record, unless the filter leaves it out. Barriers pass every filter. Returns false if the range is
    /// full; it then ends before the record.
    mutating func add(_ seq: Seq, _ value: Bytes, through filter: inout FilterRun, isEvent: Bool) -> Bool {
        switch isEvent ? filter.look(at: value) : .wanted {
        case .wanted: return add(seq: seq, value: value)
        case .leftOut: return true
        case .exhausted:
            end(before: seq)
            return false
        }
    }
}
