import ReelCore

/// What clients published through one loop and has not been answered yet.
///
/// An event is acked once it was read back from the log *and* the log reported it without an error; of one stream and
/// site a connection gets its acks in the order in which it published. After a nack, later ops of that stream and site
/// are nacked `gap` on this connection until the nacked op comes again.
struct PublishLedger {
    /// An event that was checked, made canonical and stamped.
    struct Offer {
        var site: Site
        var op: Op
        /// The record's value.
        var value: [UInt8]
        /// The client itself gave a base.
        var givenBase: Bool
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
        fileprivate var lanes: [(connection: Int, key: LaneKey)]

        fileprivate init(_ key: EventKey, _ value: [UInt8], takenMs: Int64, lane: (Int, LaneKey)) {
            self.key = key
            self.value = value
            self.takenMs = takenMs
            lanes = [lane]
        }

        var stream: StreamName { key.stream }
    }

    fileprivate struct EventKey: Hashable {
        var stream: StreamName
        var site: Site
        var op: Op
    }

    fileprivate struct LaneKey: Hashable {
        var stream: StreamName
        var site: Site
    }

    /// What one connection waits for, of one stream and site, in its order.
    private struct Lane {
        enum Place {
            /// The event was in the log already.
            case known(Seq)
            case flight(Flight)
        }
        var waiting: [(op: Op, ref: [UInt8]?, place: Place)] = []
        /// The lowest op that was nacked and has not come again.
        var nacked: Op?
    }

    /// How the log does, judged by the oldest event that waits for it.
    enum LogState: String {
        case ok, degraded, unavailable
    }

    private var lanes: [Int: [LaneKey: Lane]] = [:]
    private var flights: [EventKey: Flight] = [:]
    private var oldest = Queue<Flight>()
    private(set) var byteCount = 0
    private let byteLimit: Int

    static let degradedMs: Int64 = 2_000
    static let unavailableMs: Int64 = 5_000
    /// More lanes than these are not kept for a connection.
    static let lanesPerConnection = 10_000

    /// A ledger that takes so many bytes of events in flight, and no more.
    init(byteLimit: Int) {
        self.byteLimit = byteLimit
    }

    /// How many events wait for the log.
    var count: Int { flights.count }

    func state(nowMs: Int64) -> LogState {
        guard let first = oldest.first else { return .ok }
        let waitedMs = nowMs - first.takenMs
        return waitedMs > Self.unavailableMs ? .unavailable : waitedMs > Self.degradedMs ? .degraded : .ok
    }

    // MARK: Taking

    /// Takes a publish whole or not at all. What is to be appended comes back in order; what can be answered already
    /// is answered. `known` finds an event that was read before, with the content that stands in the log.
    mutating func offer(
        _ offers: [Offer],
        to stream: StreamName,
        from connection: Int,
        ref: [UInt8]?,
        isRefused: Bool = false,
        nowMs: Int64,
        known: (Site, Op, (PublishedContent) -> Bool) -> (seq: Seq, isSame: Bool)?
    ) -> (append: [Flight], settled: [Settled]) {
        var refusals: [ReelError?] = offers.map(\.refusal)
        var places: [Seq?] = []
        let closed = refusal(of: offers, connection, nowMs)
        var cleared: Set<Site> = []
        var own: [EventKey: Int] = [:]
        for (index, offer) in offers.enumerated() {
            places.append(nil)
            guard refusals[index] == nil else { continue }
            let nacked = lanes[connection]?[LaneKey(stream: stream, site: offer.site)]?.nacked
            if let nacked, offer.op > nacked, !cleared.contains(offer.site) {
                refusals[index] = Self.behind(nacked)
                continue
            }
            if nacked == offer.op { cleared.insert(offer.site) }
            if let closed {
                refusals[index] = closed
                continue
            }
            let key = EventKey(stream: stream, site: offer.site, op: offer.op)
            if let twin = own.updateValue(index, forKey: key), !Self.isSame(offer, offers[twin].value) {
                refusals[index] = ReelError(.badEvent, "found op \(offer.op) twice with different content")
            } else if let flight = flights[key] {
                refusals[index] = Self.isSame(offer, flight.value) ? nil : Self.uncertain
            } else if let found = known(offer.site, offer.op, { Self.isSame(offer, $0) }) {
                places[index] = found.seq
                refusals[index] = found.isSame ? nil : Self.conflict(found.seq, index)
            }
        }
        if isRefused || refusals.contains(where: { $0 != nil }) {
            return ([], refuse(offers, refusals, stream, connection, ref))
        }
        return take(offers, places, stream, connection, ref, nowMs)
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
        _ ref: [UInt8]?
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
            nack(offer.op, LaneKey(stream: stream, site: offer.site), connection)
        }
        return settled
    }

    private mutating func take(
        _ offers: [Offer],
        _ places: [Seq?],
        _ stream: StreamName,
        _ connection: Int,
        _ ref: [UInt8]?,
        _ nowMs: Int64
    ) -> ([Flight], [Settled]) {
        var append: [Flight] = []
        var touched: [LaneKey] = []
        for (offer, place) in zip(offers, places) {
            let lane = LaneKey(stream: stream, site: offer.site)
            let key = EventKey(stream: stream, site: offer.site, op: offer.op)
            var entry = Lane.Place.known(place ?? .none)
            if place == nil, let flight = flights[key] {
                flight.lanes.append((connection, lane))
                entry = .flight(flight)
            } else if place == nil {
                let flight = Flight(key, offer.value, takenMs: nowMs, lane: (connection, lane))
                flights[key] = flight
                oldest.append(flight)
                byteCount += Self.cost(of: offer.value)
                append.append(flight)
                entry = .flight(flight)
            }
            lanes[connection, default: [:]][lane, default: Lane()].waiting.append((offer.op, ref, entry))
            if lanes[connection]?[lane]?.nacked == offer.op { lanes[connection]?[lane]?.nacked = nil }
            if touched.last != lane { touched.append(lane) }
        }
        return (append, touched.flatMap { settle(connection, $0) })
    }

    // MARK: Resolving

    /// A record was read back. Only the very bytes that were handed over count.
    mutating func readBack(
        stream: StreamName,
        site: Site,
        op: Op,
        seq: Seq,
        value: UnsafeRawBufferPointer
    ) -> [Settled] {
        guard let flight = flights[EventKey(stream: stream, site: site, op: op)], flight.seq == nil,
            flight.value.withUnsafeBytes({ $0.equals(value) })
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
    mutating func failed(_ flights: [Flight], _ error: ReelError) -> [Settled] {
        var settled: [Settled] = []
        for flight in flights {
            remove(flight)
            for (connection, key) in flight.lanes {
                settled += fail(flight, connection, key, error)
            }
        }
        return settled
    }

    /// The connection is gone; what it published may still reach the log.
    mutating func forget(_ connection: Int) {
        lanes[connection] = nil
    }

    private mutating func finish(_ flight: Flight) -> [Settled] {
        remove(flight)
        return flight.lanes.flatMap { settle($0.connection, $0.key) }
    }

    private mutating func remove(_ flight: Flight) {
        guard !flight.isOver else { return }
        flight.isOver = true
        flights[flight.key] = nil
        byteCount -= Self.cost(of: flight.value)
        while oldest.first?.isOver == true { _ = oldest.popFirst() }
    }

    /// Acks what stands at the front of the lane and is durable.
    private mutating func settle(_ connection: Int, _ key: LaneKey) -> [Settled] {
        guard let lane = lanes[connection]?[key] else { return [] }
        var settled: [Settled] = []
        for entry in lane.waiting {
            let seq: Seq? =
                switch entry.place {
                case .known(let seq): seq
                case .flight(let flight): flight.isReported ? flight.seq : nil
                }
            guard let seq else { break }
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

    /// Nacks the flight's entry in the lane, and all behind it.
    private mutating func fail(
        _ flight: Flight,
        _ connection: Int,
        _ key: LaneKey,
        _ error: ReelError
    ) -> [Settled] {
        guard let lane = lanes[connection]?[key] else { return [] }
        let index = lane.waiting.firstIndex { entry in
            if case .flight(let waiting) = entry.place { waiting === flight } else { false }
        }
        guard let index else { return [] }
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
            nack(entry.op, key, connection)
        }
        lanes[connection]?[key]?.waiting.removeSubrange(index...)
        return settled
    }

    private mutating func nack(_ op: Op, _ key: LaneKey, _ connection: Int) {
        let nacked = lanes[connection]?[key]?.nacked ?? op
        lanes[connection, default: [:]][key, default: Lane()].nacked = min(op, nacked)
    }

    private mutating func dropIfIdle(_ connection: Int, _ key: LaneKey) {
        guard let lane = lanes[connection]?[key], lane.waiting.isEmpty, lane.nacked == nil else { return }
        lanes[connection]?[key] = nil
        if lanes[connection]?.isEmpty == true { lanes[connection] = nil }
    }

    // MARK: Words

    private static func cost(of value: [UInt8]) -> Int { value.count + 256 }

    private static func isSame(_ offer: Offer, _ value: [UInt8]) -> Bool {
        value.withUnsafeBytes { isSame(offer, PublishedContent($0)) }
    }

    private static func isSame(_ offer: Offer, _ content: PublishedContent) -> Bool {
        offer.value.withUnsafeBytes { PublishedContent($0).isSame(as: content, givenBase: offer.givenBase) }
    }

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
