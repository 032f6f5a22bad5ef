public import ReelCore

/// An `events` frame as the judge needs it: which seqs it proves, and for each event enough to know it again.
public struct EventsProof: Sendable {
    /// An event, known again by seq and hash.
    public struct Event: Sendable {
        /// Its seq.
        public var seq: Seq
        /// Its site; nil for a barrier.
        public var site: Site?
        /// Its op; −1 for a barrier.
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
    /// Their sites, each once.
    public var sites: [Site]

    /// What the frame proves. `tables` are used for taking events apart, and `look` sees each event's value before the
    /// tables hold the next.
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
