internal import ReelCore

extension Outbox {
    /// The content of one `publish` frame.
    struct PublishBatch: Sendable, Equatable {
        /// The frame's `ref`.
        var ref: Int64
        /// The canonical events in the order of their ops.
        var events: [[UInt8]]
    }

    /// The limits of a gateway for one frame.
    struct Window: Sendable {
        var events: Int
        /// The maximum total size of several events.
        var bytes: Int
        /// The maximum size of a single event. The gateway ends the connection for a larger one.
        var event = Int.max
    }

    /// The limits of unanswered events, in number and in bytes. When one is reached, the queue waits. A `ping` must
    /// wait for the sent events, and events that a slow line has not delivered in time are sent again.
    static let inFlightMax = 1_024
    static let inFlightBytesMax = 128 << 10
    /// The number of successive gap answers for the first op after which another connection is needed.
    static let stuckAfter = 3
    /// The shortest and the longest pause before events are sent again.
    static let retryMinMs: Int64 = 20
    static let retryMaxMs: Int64 = 30_000

    /// The time from which the next events may be sent; nil: not before something else happens.
    ///
    /// Nothing is sent again before all sent events are answered. Otherwise copies would fill the connection, and each
    /// answer to a copy could cause the next copy.
    var nextSendMs: Int64? {
        guard !isHeld, conflicting == nil, coveredCount == 0, hasBegun || inFlight == 0,
            index(behind: sentThrough) < entries.endIndex
        else {
            return nil
        }
        return notBeforeMs
    }

    /// Called when there is a new connection. The outcome of events sent before is not known, so all events without an
    /// ack are sent again, in order.
    mutating func connected() {
        (inFlight, inFlightBytes) = (0, 0)
        release()
    }

    /// Called when another token is valid on the connection. A held queue continues.
    mutating func release() {
        isHeld = false
        notBeforeMs = 0
        rewindsInARow = 0
        rewind()
    }

    /// Returns the next events for the connection, at least one if there is one; nil: nothing to send now. Events get
    /// their op here, so commit the writes before the batch is sent.
    /// - Parameters:
    ///   - base: the last seq that the device has folded.
    ///   - horizon: an event without an op gets the new base if its own base is below this seq, unless it depends on
    ///     its base. The seq is above the present horizon, because the horizon rises while the event is in transit.
    ///   - confirmed: the folded state. An insert of an object that it holds is sent as an update. Nil: no state is
    ///     known.
    mutating func nextBatch(
        _ window: Window,
        base: Seq,
        horizon: Seq,
        confirmed: Fold? = nil,
        nowMs: Int64
    ) -> PublishBatch? {
        guard let nextSendMs, nextSendMs <= nowMs else { return nil }
        var parcel = PublishBatch(ref: generation, events: [])
        var bytes = 0
        var index = index(behind: sentThrough)
        while index < entries.endIndex, inFlight < Self.inFlightMax, inFlightBytes < Self.inFlightBytesMax,
            parcel.events.count < window.events
        {
            if entries[index].author == nil, entries[index].waits != nil { break }
            if entries[index].author == nil, let confirmed {
                let number = entries[index].number
                guard express(at: index, over: confirmed) else {
                    index = self.index(behind: number - 1)
                    continue
                }
                if confirmed.hasFailedToRead { break }
            }
            let author = entries[index].author ?? EventID(site: site, op: nextOp)
            if entries[index].author == nil, entries[index].base < horizon, !entries[index].event.dependsOnBase {
                entries[index].base = base
            }
            let encoded = entries[index].event.encoded(base: entries[index].base, author: author)
            guard encoded.count <= window.event || entries[index].event.isFiller else {
                let error = ReelError(.tooLarge, "found \(encoded.count) bytes, this node takes \(window.event)")
                // Later events may count on its text, so its op must be used like any other.
                if entries[index].author == nil { give(author, at: index) } else { entries[index].isResent = true }
                refuse(at: index, error)
                continue
            }
            bytes += encoded.count + 1
            guard bytes <= window.bytes || parcel.events.isEmpty else { break }
            if entries[index].author == nil { give(author, at: index) } else { entries[index].isResent = true }
            inFlight += 1
            inFlightBytes += encoded.count
            parcel.events.append(encoded)
            sentThrough = entries[index].number
            entries.formIndex(after: &index)
        }
        guard !parcel.events.isEmpty else { return nil }
        hasBegun = true
        return parcel
    }

    mutating func give(_ author: EventID, at index: EntryList.Index) {
        nextOp = author.op + 1
        name(author, at: index)
        lastGiven = max(lastGiven, entries[index].number)
        entries[index].firstSent = position?.moment
        if firstOps[site] == nil { firstOps[site] = author.op }
        write(.put(entries[index]))
        write(.site(site, next: nextOp))
        // A site that has ended takes no further op.
        if entries[index].event.endsSite { changeSite() }
    }

    /// Called when a gateway reports that the op is durable at `seq`. If the own fold has passed that seq (`folded`)
    /// without consuming the op, that copy will never be consumed, and the op is sent again.
    mutating func acked(_ author: EventID, seq: Seq, folded: Seq, nowMs: Int64) {
        defer { answered() }
        guard let index = index(of: author) else {
            // The fold has consumed the event before the ack arrived.
            rewindsInARow = 0
            return
        }
        guard seq > folded || entries[index].covered != nil else { return sendAgain(afterMs: 0, nowMs: nowMs) }
        entries[index].acked = seq
        rewindsInARow = 0
        notify(.acked(number: entries[index].number, seq: seq))
    }

    /// Called when a gateway did not accept the op. `ref`: the `ref` of the publish, nil if it was lost.
    ///
    /// With `retry` everything from the first op without an ack is sent again. Without `retry` there are three cases:
    ///
    /// - A bad event is reported as refused, and a filler event uses its op, so that later events are accepted.
    /// - An op that another device has used waits for the fold, which will show whose event it was.
    /// - Any other error (a token, a stream's name) is not caused by an event. The queue waits for another connection
    ///   or token.
    mutating func nacked(_ author: EventID, _ error: ReelError, ref: Int64?, nowMs: Int64) {
        defer { answered() }
        guard let index = index(of: author), entries[index].acked == nil, entries[index].covered == nil else { return }
        // A final error is valid for the event even if sending has restarted after the nack of an earlier publish. It
        // is not valid for a filler that has replaced the event meanwhile.
        let isFinal = error.retryMs == nil && !entries[index].event.isFiller
        guard isFinal || ref ?? generation == generation else { return }
        switch error.code {
        case _ where error.retryMs != nil:
            if error.code == .gap, firstUnacked == index {
                forgetAcks(from: entries.startIndex)
                if rewindsInARow >= Self.stuckAfter { notify(.stuck) }
            }
            sendAgain(afterMs: error.retryMs ?? 0, nowMs: nowMs)
        case .conflict:
            conflicting = author
        case .badEvent, .badJSON, .badNumber, .badRange, .badBase, .tooLarge, .limit, .range, .type:
            if entries[index].event.isFiller {
                hold(error)
            } else {
                refuse(at: index, error)
                sendAgain(afterMs: 0, nowMs: nowMs)
            }
        default:
            hold(error)
        }
    }

    /// Settles an event that is not sent, or not sent again: as `failed`, or as `unknown` if an earlier copy may still
    /// reach the log. A filler event takes its op, so that the ops of later events leave no gap.
    mutating func refuse(at index: EntryList.Index, _ error: ReelError) {
        notify(.settled(number: entries[index].number, entries[index].isResent ? .unknown(error) : .failed(error)))
        replace(at: index, by: entries[index].event.filler)
    }

    /// Counts one answer. After the last answer, a restart begins after the events that were acked meanwhile.
    private mutating func answered() {
        // The sizes of the events are assumed to be about equal.
        if inFlight > 0 { inFlightBytes -= inFlightBytes / inFlight }
        inFlight = max(0, inFlight - 1)
        if inFlight == 0, !hasBegun { rewind() }
    }

    mutating func hold(_ error: ReelError) {
        if !isHeld { notify(.held(error)) }
        isHeld = true
    }

    /// The index of the first entry without an ack.
    private var firstUnacked: EntryList.Index? { entries.firstIndex { $0.acked == nil } }

    mutating func forgetAcks(from index: EntryList.Index) {
        for index in entries.indices[index...] { entries[index].acked = nil }
    }

    /// Sends again from the first op without an ack, after a pause that grows as long as no ack arrives. If a restart
    /// is pending already, this call is one more answer to the events that were sent before, and the pause does not
    /// grow.
    mutating func sendAgain(afterMs: Int64, nowMs: Int64) {
        var pauseMs = afterMs
        if hasBegun {
            if rewindsInARow > 0 { pauseMs = max(pauseMs, Self.retryMinMs << Int64(min(rewindsInARow - 1, 10))) }
            rewindsInARow += 1
        }
        notBeforeMs = max(notBeforeMs, nowMs + min(pauseMs, Self.retryMaxMs))
        rewind()
    }

    mutating func rewind() {
        if hasBegun { generation += 1 }
        hasBegun = false
        sentThrough = firstUnacked.map { entries[$0].number - 1 } ?? entries.last?.number ?? 0
    }
}
