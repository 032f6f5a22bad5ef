import ReelCore

/// What clients published through one loop and has not been answered yet.
///
/// An event is acked once it was read back from the log *and* the log reported it without an error; of one stream and
/// site a connection gets its acks in the order in which it published. An event that comes again is appended again:
/// only a fold knows whether an earlier copy was consumed, and it consumes each op once.
///
/// After a nack, later ops of that stream and site are nacked `gap` on this connection until the nacked op comes again,
/// from the client or from the log: then the client's own fold may have consumed it, and it will not be sent again.
struct PublishLedger {
    /// An event that was checked, made canonical and stamped.
    struct Offer {
        var site: Site
        var op: Op
        /// The record's value.
        var value: [UInt8]
        /// Why it cannot be taken; `value` does not matter then.
        var refusal: ReelError?
    }

    /// The answer to one event.
    struct Settled: Equatable {
        enum Answer: Equatable {
            case acked(Seq)
            case nacked(ReelError)
        }
        var connection: Int
        var stream: StreamName
        /// The `ref` of the publish, as JSON text.
        var ref: [UInt8]?
        var site: Site
        var op: Op
        var answer: Answer
    }

    /// An event on its way through the log.
    final class Flight {
        fileprivate let key: EventKey
        let value: [UInt8]
        fileprivate let takenMs: Int64
        /// The last seq that had been read when the record was handed to the log.
        var headWhenHandedOver: Seq = .none
        fileprivate var seq: Seq?
        fileprivate var isReported = false
        fileprivate var isOver = false
        fileprivate let connection: Int

        fileprivate init(_ key: EventKey, _ value: [UInt8], takenMs: Int64, connection: Int) {
            self.key = key
            self.value = value
            self.takenMs = takenMs
            self.connection = connection
        }

        var stream: StreamName { key.lane.stream }
    }

    fileprivate struct LaneKey: Hashable {
        var stream: StreamName
        var site: Site
    }

    fileprivate struct EventKey: Hashable {
        var lane: LaneKey
        var op: Op
    }

    /// What one connection waits for, of one stream and site, in its order.
    private struct Lane {
        var waiting: [(op: Op, ref: [UInt8]?, flight: Flight)] = []
        /// The lowest op that was nacked and has not come again, and the highest one.
        var nacked: (ops: ClosedRange<Op>, untilMs: Int64)?
    }

    /// How the log does, judged by the oldest event that waits for it.
    enum LogState: String {
        case ok, degraded, unavailable
    }

    private var lanes: [Int: [LaneKey: Lane]] = [:]
    /// The connections that wait for a nacked op of the lane.
    private var refusing: [LaneKey: Set<Int>] = [:]
    private var flights: [EventKey: [Flight]] = [:]
    private var oldest = Queue<Flight>()
    /// How many events wait for the log.
    private(set) var count = 0
    private(set) var byteCount = 0
    private let byteLimit: Int

    static let degradedMs: Int64 = 2_000
    static let unavailableMs: Int64 = 5_000
    /// More lanes than these are not kept for a connection.
    static let lanesPerConnection = 10_000
    /// So long a nack holds up later ops. What a client's fold has consumed is not sent again, and the gateway may have
    /// read it before the nack.
    static let refusalMs: Int64 = 10_000

    /// A ledger that takes so many bytes of events in flight, and no more.
    init(byteLimit: Int) {
        self.byteLimit = byteLimit
    }

    /// Whether nothing that is read back matters here.
    var isIdle: Bool { flights.isEmpty && refusing.isEmpty }

    func state(nowMs: Int64) -> LogState {
        guard let first = oldest.first else { return .ok }
        let waitedMs = nowMs - first.takenMs
        return waitedMs > Self.unavailableMs ? .unavailable : waitedMs > Self.degradedMs ? .degraded : .ok
    }

    // MARK: Taking

    /// Takes a publish whole or not at all. What is to be appended comes back in order; what can be answered already
    /// is answered. `conflict` finds the seq of an event of the same op that was consumed and says something else.
    mutating func offer(
        _ offers: [Offer],
        to stream: StreamName,
        from connection: Int,
        ref: [UInt8]?,
        isRefused: Bool = false,
        nowMs: Int64,
        conflict: (Offer) -> Seq?
    ) -> (append: [Flight], settled: [Settled]) {
        var refusals: [ReelError?] = offers.map(\.refusal)
        let closed = refusal(of: offers, connection, nowMs)
        var cleared: Set<Site> = []
        var own: [EventKey: Int] = [:]
        for (index, offer) in offers.enumerated() where refusals[index] == nil {
            let lane = LaneKey(stream: stream, site: offer.site)
            let key = EventKey(lane: lane, op: offer.op)
            let nacked = nacked(lane, connection, nowMs)
            if let nacked, offer.op > nacked, !cleared.contains(offer.site) {
                refusals[index] = Self.behind(nacked)
                continue
            }
            if nacked == offer.op { cleared.insert(offer.site) }
            if let closed {
                refusals[index] = closed
            } else if let twin = own.updateValue(index, forKey: key),
                PublishedContent.contradict(offer.value, offers[twin].value)
            {
                refusals[index] = ReelError(.badEvent, "found op \(offer.op) twice with different content")
            } else if flights[key]?.contains(where: { PublishedContent.contradict(offer.value, $0.value) }) == true {
                refusals[index] = Self.uncertain
            } else if let seq = conflict(offer) {
                refusals[index] = Self.conflict(seq, index)
            }
        }
        if isRefused || refusals.contains(where: { $0 != nil }) {
            return ([], refuse(offers, refusals, stream, connection, ref, nowMs))
        }
        return (take(offers, stream, connection, ref, nowMs), [])
    }

    /// Why nothing at all can be taken now.
    private func refusal(of offers: [Offer], _ connection: Int, _ nowMs: Int64) -> ReelError? {
        if state(nowMs: nowMs) == .unavailable {
            return ReelError(.logUnavailable, "the log has not answered for 5 s", retryMs: 1_000)
        }
        let size = offers.reduce(0) { $0 + Self.cost(of: $1.value) }
        if byteCount > 0, byteCount + size > byteLimit {
            return ReelError(.overloaded, "\(byteCount) bytes wait for the log, expected less", retryMs: 200)
        }
        if lanes[connection]?.count ?? 0 > Self.lanesPerConnection {
            return ReelError(.overloaded, "one connection publishes for too many sites", retryMs: 1_000)
        }
        return nil
    }

    private mutating func refuse(
        _ offers: [Offer],
        _ refusals: [ReelError?],
        _ stream: StreamName,
        _ connection: Int,
        _ ref: [UInt8]?,
        _ nowMs: Int64
    ) -> [Settled] {
        var settled: [Settled] = []
        for (offer, refusal) in zip(offers, refusals) {
            let error = refusal ?? ReelError(.gap, "another event of the same publish was refused", retryMs: 0)
            settled.append(
                Settled(
                    connection: connection,
                    stream: stream,
                    ref: ref,
                    site: offer.site,
                    op: offer.op,
                    answer: .nacked(error)
                )
            )
            // The first copy of what is a conflict was consumed: nothing is missing before later ops.
            if error.code != .conflict {
                nack(offer.op, LaneKey(stream: stream, site: offer.site), connection, nowMs)
            }
        }
        return settled
    }

    private mutating func take(
        _ offers: [Offer],
        _ stream: StreamName,
        _ connection: Int,
        _ ref: [UInt8]?,
        _ nowMs: Int64
    ) -> [Flight] {
        offers.map { offer in
            let lane = LaneKey(stream: stream, site: offer.site)
            let key = EventKey(lane: lane, op: offer.op)
            let flight = Flight(key, offer.value, takenMs: nowMs, connection: connection)
            flights[key, default: []].append(flight)
            oldest.append(flight)
            count += 1
            byteCount += Self.cost(of: offer.value)
            lanes[connection, default: [:]][lane, default: Lane()].waiting.append((offer.op, ref, flight))
            if lanes[connection]?[lane]?.nacked?.ops.lowerBound == offer.op { clear(lane, connection) }
            return flight
        }
    }

    // MARK: Resolving

    /// A record was read back. Only the very bytes that were handed over count for an ack.
    mutating func readBack(
        stream: StreamName,
        site: Site,
        op: Op,
        seq: Seq,
        value: UnsafeRawBufferPointer
    ) -> [Settled] {
        let lane = LaneKey(stream: stream, site: site)
        for connection in refusing[lane] ?? [] { cameBack(op, lane, connection) }
        let waiting = flights[EventKey(lane: lane, op: op)]
        guard let flight = waiting?.first(where: { $0.seq == nil && $0.value.withUnsafeBytes { $0.equals(value) } })
        else { return [] }
        flight.seq = seq
        return flight.isReported ? finish(flight) : []
    }

    /// The log reported these records without an error.
    mutating func reported(_ flights: [Flight]) -> [Settled] {
        var settled: [Settled] = []
        for flight in flights {
            flight.isReported = true
            if flight.seq != nil { settled += finish(flight) }
        }
        return settled
    }

    /// The log could not append these records, or does not know whether it has.
    mutating func failed(_ flights: [Flight], _ error: ReelError, nowMs: Int64) -> [Settled] {
        var settled: [Settled] = []
        for flight in flights {
            remove(flight)
            settled += fail(flight, error, nowMs)
        }
        return settled
    }

    /// What has not been read back of these streams, in the order in which it was taken.
    func unread(where isMeant: (StreamName) -> Bool) -> [Flight] {
        (0..<oldest.count).map { oldest[$0] }.filter { !$0.isOver && $0.seq == nil && isMeant($0.stream) }
    }

    /// Whether something that was taken from the connection is not answered yet.
    func awaitsAnswer(_ connection: Int) -> Bool {
        lanes[connection]?.values.contains { !$0.waiting.isEmpty } ?? false
    }

    /// The connection is gone; what it published may still reach the log.
    mutating func forget(_ connection: Int) {
        for (key, lane) in lanes[connection] ?? [:] where lane.nacked != nil { clear(key, connection) }
        lanes[connection] = nil
    }

    private mutating func finish(_ flight: Flight) -> [Settled] {
        remove(flight)
        return settle(flight.connection, flight.key.lane)
    }

    private mutating func remove(_ flight: Flight) {
        guard !flight.isOver else { return }
        flight.isOver = true
        flights[flight.key]?.removeAll { $0 === flight }
        if flights[flight.key]?.isEmpty == true { flights[flight.key] = nil }
        count -= 1
        byteCount -= Self.cost(of: flight.value)
        while oldest.first?.isOver == true { _ = oldest.popFirst() }
    }

    /// Acks what stands at the front of the lane and is durable.
    private mutating func settle(_ connection: Int, _ key: LaneKey) -> [Settled] {
        guard let lane = lanes[connection]?[key] else { return [] }
        var settled: [Settled] = []
        for entry in lane.waiting {
            guard entry.flight.isReported, let seq = entry.flight.seq else { break }
            settled.append(
                Settled(
                    connection: connection,
                    stream: key.stream,
                    ref: entry.ref,
                    site: key.site,
                    op: entry.op,
                    answer: .acked(seq)
                )
            )
        }
        lanes[connection]?[key]?.waiting.removeFirst(settled.count)
        dropIfIdle(connection, key)
        return settled
    }

    /// Nacks the flight's entry in its lane, and all behind it.
    private mutating func fail(_ flight: Flight, _ error: ReelError, _ nowMs: Int64) -> [Settled] {
        let (connection, key) = (flight.connection, flight.key.lane)
        guard let lane = lanes[connection]?[key], let index = lane.waiting.firstIndex(where: { $0.flight === flight })
        else { return [] }
        var settled: [Settled] = []
        for (place, entry) in lane.waiting.enumerated().dropFirst(index) {
            let answer = place == index ? error : Self.behind(flight.key.op)
            settled.append(
                Settled(
                    connection: connection,
                    stream: key.stream,
                    ref: entry.ref,
                    site: key.site,
                    op: entry.op,
                    answer: .nacked(answer)
                )
            )
            if entry.flight.seq == nil { nack(entry.op, key, connection, nowMs) }
        }
        lanes[connection]?[key]?.waiting.removeSubrange(index...)
        dropIfIdle(connection, key)
        return settled
    }

    // MARK: Refusing what comes behind

    /// The op that later ones of the lane must wait for.
    private func nacked(_ key: LaneKey, _ connection: Int, _ nowMs: Int64) -> Op? {
        guard let nacked = lanes[connection]?[key]?.nacked, nowMs < nacked.untilMs else { return nil }
        return nacked.ops.lowerBound
    }

    private mutating func nack(_ op: Op, _ key: LaneKey, _ connection: Int, _ nowMs: Int64) {
        if nacked(key, connection, nowMs) ?? .max <= op {
            let ops = lanes[connection]?[key]?.nacked?.ops ?? op...op
            lanes[connection]?[key]?.nacked?.ops = ops.lowerBound...max(op, ops.upperBound)
            return
        }
        let isKnown = lanes[connection]?[key] != nil
        guard isKnown || lanes[connection]?.count ?? 0 < Self.lanesPerConnection else { return }
        let highest = max(op, lanes[connection]?[key]?.nacked?.ops.upperBound ?? op)
        lanes[connection, default: [:]][key, default: Lane()].nacked = (op...highest, nowMs + Self.refusalMs)
        refusing[key, default: []].insert(connection)
    }

    /// The log shows a nacked op: the next one that was nacked is what is missing now.
    private mutating func cameBack(_ op: Op, _ key: LaneKey, _ connection: Int) {
        guard let ops = lanes[connection]?[key]?.nacked?.ops, ops.lowerBound == op else { return }
        guard op < ops.upperBound else { return clear(key, connection) }
        lanes[connection]?[key]?.nacked?.ops = op + 1...ops.upperBound
    }

    private mutating func clear(_ key: LaneKey, _ connection: Int) {
        lanes[connection]?[key]?.nacked = nil
        refusing[key]?.remove(connection)
        if refusing[key]?.isEmpty == true { refusing[key] = nil }
        dropIfIdle(connection, key)
    }

    private mutating func dropIfIdle(_ connection: Int, _ key: LaneKey) {
        guard let lane = lanes[connection]?[key], lane.waiting.isEmpty, lane.nacked == nil else { return }
        lanes[connection]?[key] = nil
        if lanes[connection]?.isEmpty == true { lanes[connection] = nil }
    }

    // MARK: Words

    private static func cost(of value: [UInt8]) -> Int { value.count + 256 }

    private static func behind(_ op: Op) -> ReelError {
        ReelError(.gap, "op \(op) was nacked and has not come again", retryMs: 0)
    }

    private static let uncertain = ReelError(
        .gap,
        "the same op with other content is on its way into the log",
        retryMs: 50
    )

    private static func conflict(_ seq: Seq, _ index: Int) -> ReelError {
        ReelError(.conflict, "the same op with other content stands at seq \(seq)", index: index)
    }
}
