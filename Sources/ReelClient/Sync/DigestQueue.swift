internal import ReelCore

/// The streams whose digests a client asks for, collected so that one request asks for many. A pure state machine.
///
/// An app opens its streams one after the other. So the queue waits until no further stream has come for a moment, and
/// a request that is running also collects those that come after it.
struct DigestQueue {
    /// The pause without a further stream after which the collected ones are asked for, and the longest time that a
    /// stream waits for others.
    static let (quietMs, delayMsMax): (Int64, Int64) = (20, 100)
    /// The maximum number of streams in a request; a node accepts 1,000.
    static let streamsMax = 1_000

    /// The streams that wait, with the number of their place in the queue.
    private var places: [StreamName: Int] = [:]
    /// The streams of the running request whose answer is still of use. Nil: no request is running.
    private var asked: Set<StreamName>?
    private var lastPlace = 0
    private var firstMs: Int64 = 0
    private var lastMs: Int64 = 0
    /// True if the streams that wait now need not wait for others.
    private var isUrgent = false

    /// The time of the next request; nil: no stream waits, or a request is running.
    var dueMs: Int64? {
        guard !places.isEmpty, asked == nil else { return nil }
        if isUrgent || places.count >= Self.streamsMax { return firstMs }
        return min(lastMs + Self.quietMs, firstMs + Self.delayMsMax)
    }

    /// True if no stream needs the running request any more.
    var isAbandoned: Bool { asked?.isEmpty == true }

    /// Adds a stream that waits for its digest.
    mutating func add(_ stream: StreamName, nowMs: Int64) {
        asked?.remove(stream)
        if places.isEmpty { firstMs = nowMs }
        lastMs = nowMs
        lastPlace += 1
        places[stream] = lastPlace
    }

    /// Removes a stream, which needs no digest any more.
    mutating func remove(_ stream: StreamName) {
        asked?.remove(stream)
        places[stream] = nil
    }

    /// Called when a node has sent `welcome`. The streams that are added in this turn are asked for at once, because
    /// they have waited long enough.
    mutating func connected() { isUrgent = true }

    /// Returns the streams of a request that begins now, in the order in which they were added.
    mutating func begin(nowMs: Int64) -> [StreamName] {
        let streams = places.sorted { $0.value < $1.value }.prefix(Self.streamsMax).map(\.key)
        for stream in streams { places[stream] = nil }
        (asked, isUrgent, firstMs) = (Set(streams), false, nowMs)
        return streams
    }

    /// True if the stream needs the answer of the running request, or of a later one.
    func awaits(_ stream: StreamName) -> Bool { asked?.contains(stream) == true || places[stream] != nil }

    /// Ends the running request. Returns the streams that need its answer.
    mutating func end() -> Set<StreamName> {
        let streams = asked ?? []
        asked = nil
        return streams
    }
}
