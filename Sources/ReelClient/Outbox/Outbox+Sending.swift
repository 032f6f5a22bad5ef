internal import ReelCore

extension Outbox {
    /// What goes into one `publish` frame.
    struct PublishBatch: Sendable, Equatable {
        /// The frame's `ref`.
        var ref: Int64
        /// Canonical events in the order of their ops.
        var events: [[UInt8]]
    }

    /// What a gateway takes in one frame.
    struct Window: Sendable {
        var events: Int
        /// Of several events.
        var bytes: Int
        /// The bytes of a single one, beyond which the gateway ends the connection.
        var event = Int.max
    }

    /// So many events are on their way without an answer, or about so many bytes; then the queue waits. Behind them
    /// stands the question whether the node lives, and what a slow line has not brought there in time is sent again.
    static let inFlightMax = 1_024
    static let inFlightBytesMax = 128 << 10
    /// So many times in a row the first op was said to lie behind a hole.
    static let stuckAfter = 3
    /// The shortest and the longest pause before events are sent again.
    static let retryMinMs: Int64 = 20
    static let retryMaxMs: Int64 = 30_000

    /// When sending may go on; nil: not before something else happens.
    ///
    /// Nothing goes again before all is answered that was sent before: the pipe would fill with copies, and each answer
    /// to one of them could be a reason for the next.
    var nextSendMs: Int64? {
        guard !isHeld, contested == nil, hasBegun || inFlight == 0, index(behind: sentThrough) < entries.endIndex else {
            return nil
        }
        return notBeforeMs
    }

    /// A connection is there: nobody knows what came of what was sent before, so all that is not acked goes again, in
    /// order.
    mutating func connected() {
        (inFlight, inFlightBytes) = (0, 0)
        release()
    }

    /// Another token holds on the connection: what was held goes on.
    mutating func release() {
        isHeld = false
        notBeforeMs = 0
        rewindsInARow = 0
        rewind()
    }

    /// Returns the next events for the connection, at least one if there is one; nil: nothing to send now. Events get
    /// their op here, so commit the writes before the parcel is sent.
    /// - Parameters:
    ///   - base: the last seq that the device has folded.
    ///   - horizon: an event without an op gets the new base if its own base is below this seq, unless it depends on
    ///     its base.
    ///   - confirmed: the folded state. An insert of an object that it holds is sent as an update. nil: no state is
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
            }
            let author = entries[index].author ?? Event.Author(site: site, op: nextOp)
            if entries[index].author == nil, entries[index].base < horizon, !entries[index].event.dependsOnBase {
                entries[index].base = base
            }
            let encoded = entries[index].event.encoded(base: entries[index].base, author: author)
            guard encoded.count <= window.event || entries[index].event.isFiller else {
                let error = ReelError(.tooLarge, "found \(encoded.count) bytes, this node takes \(window.event)")
                // What was made behind it may count on its text: its place in the log is filled like any other's.
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
            index += 1
        }
        guard !parcel.events.isEmpty else { return nil }
        hasBegun = true
        return parcel
    }

    mutating func give(_ author: Event.Author, at index: Int) {
        nextOp = author.op + 1
        entries[index].author = author
        lastGiven = max(lastGiven, entries[index].number)
        entries[index].firstSent = position?.moment
        if firstOps[site] == nil { firstOps[site] = author.op }
        write(.put(entries[index]))
        write(.site(site, next: nextOp))
        // A site that has ended takes no further op.
        if entries[index].event.endsSite { changeSite() }
    }

    /// A gateway says that the op is durable at seq. `folded`: how far the own fold is. If it has passed that seq and
    /// still the op was not consumed, that copy never will be, and the op goes again.
    mutating func acked(_ author: Event.Author, seq: Seq, folded: Seq, nowMs: Int64) {
        defer { answered() }
        guard let index = index(of: author) else {
            // The fold was faster.
            rewindsInARow = 0
            return
        }
        guard seq > folded else { return sendAgain(afterMs: 0, nowMs: nowMs) }
        entries[index].acked = seq
        rewindsInARow = 0
        notify(.acked(number: entries[index].number, seq: seq))
    }

    /// A gateway did not take the op. `ref`: that of the publish, nil if it was lost.
    ///
    /// With `retry` all is sent again from the first op without an ack. Without, it depends on whose fault it is: a bad
    /// event is reported, and another one fills its op, so that those behind it find their way; an op that somebody
    /// else used waits for the fold, which will say whose event it was; anything else (a token, a stream's name) is no
    /// event's fault, and the queue waits for another connection or token.
    mutating func nacked(_ author: Event.Author, _ error: ReelError, ref: Int64?, nowMs: Int64) {
        defer { answered() }
        guard let index = index(of: author), entries[index].acked == nil else { return }
        // What is final holds for the event, also where a publish that was nacked earlier has begun sending anew; but
        // not for what has taken its place meanwhile.
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
            contested = author
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

    /// Settles an event that is not sent, or not sent again: as `refused`, or as `unknown` if an earlier copy may still
    /// reach the log. A filler event takes its op, so that the ops of later events leave no gap.
    mutating func refuse(at index: Int, _ error: ReelError) {
        notify(.settled(number: entries[index].number, entries[index].isResent ? .unknown(error) : .refused(error)))
        replace(at: index, by: entries[index].event.filler)
    }

    /// Once there is nothing more to wait for, a new beginning is behind what was acked meanwhile.
    private mutating func answered() {
        // Each is as large as the others, about.
        if inFlight > 0 { inFlightBytes -= inFlightBytes / inFlight }
        inFlight = max(0, inFlight - 1)
        if inFlight == 0, !hasBegun { rewind() }
    }

    mutating func hold(_ error: ReelError) {
        if !isHeld { notify(.held(error)) }
        isHeld = true
    }

    /// Where the first entry without an ack stands.
    private var firstUnacked: Int? { entries.firstIndex { $0.acked == nil } }

    mutating func forgetAcks(from index: Int) {
        for index in index..<entries.endIndex { entries[index].acked = nil }
    }

    /// Sends again from the first op without an ack, after a pause that grows as long as no ack comes. Where it is to
    /// begin anew already, this is one more answer to what was sent before.
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
