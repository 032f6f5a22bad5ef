public import ReelCore

/// An `events` frame in the form that the checker needs: the proven seqs, and the identity of each event.
public struct EventsProof: Sendable {
    /// An event, identified by seq and hash.
    public struct Event: Sendable {
        /// The seq of the event.
        public var seq: Seq
        /// The site of the event; nil for a barrier.
        public var site: Site?
        /// The op of the event; −1 for a barrier.
        public var op: Op
        /// FNV-1a 64 of the record's value.
        public var hash: UInt64
    }

    /// The stream.
    public var stream: StreamName
    /// The first seq that is proven.
    public var from: Seq
    /// The last seq that is proven.
    public var to: Seq
    /// The events.
    public var events: [Event]
    /// The sites of the events, each once.
    public var sites: [Site]

    /// Creates the proof of a frame.
    ///
    /// - Parameters:
    ///   - frame: the frame.
    ///   - tables: tables to parse the events with. Their content is undefined afterwards.
    ///   - look: called with the tables and the value of each event, and not for barriers. The value is valid only
    ///     during the call.
    public init(
        _ frame: ServerFrame.Events,
        tables: inout ParsedEvent,
        look: (ParsedEvent, Bytes) -> Void = { _, _ in }
    ) {
        (stream, from, to, events, sites) = (frame.stream, frame.from, frame.to, [], [])
        events.reserveCapacity(frame.events.count)
        for event in frame.events {
            event.value.withUnsafeBytes { value in
                var hash = FNV1a()
                hash.add(value)
                var taken = Event(seq: event.seq, site: nil, op: -1, hash: hash.value)
                if (try? tables.parse(value)) != nil {
                    (taken.site, taken.op) = (tables.site, tables.op)
                    if !sites.contains(tables.site) { sites.append(tables.site) }
                    look(tables, value)
                }
                events.append(taken)
            }
        }
    }
}
