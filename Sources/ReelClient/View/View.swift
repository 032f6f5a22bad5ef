internal import ReelCore

/// The part of one stream that this device holds: the proven seqs, and the fold of those without a gap from the
/// beginning.
///
/// A pure state machine. Seqs are covered by frames that prove them, by `upto`, and by a snapshot for all seqs below
/// it. Events above a gap are held until the gap is filled, and never folded before. Gaps are computed as `[0…head] −
/// covered`, so the reason for a missing seq does not matter.
struct View: Sendable {
    /// An event of an own site that was folded.
    struct Own: Sendable {
        var author: EventID
        var seq: Seq
        var outcome: Outcome
        /// The bytes of the event as its author sent them, without the members that the gateway has stamped.
        var content: [UInt8]
        /// The user name that the gateway has stamped, in the form between the quotes of canonical JSON.
        var by: [UInt8]?

        /// The keys of the objects that the event names.
        var objects: [Overlay.Key] {
            var base = Seq.none
            let event = content.withUnsafeBytes { SyncEvent(encoded: $0, base: &base) }
            return event?.changes.map { Fold.key(model: $0.model, id: $0.id) } ?? []
        }
    }

    /// The results of a step.
    struct Progress: Sendable {
        /// The newly covered events, in no order, for the store.
        var received: [DeliveredEvent] = []
        /// Those of the received events that are above a gap: known, but not folded yet.
        var seen: [DeliveredEvent] = []
        /// The events of own sites that were folded, in order.
        var own: [Own] = []
        /// The objects that the folded events of all other sites have changed; nil: nobody reads them.
        var others: Set<Overlay.Key>?
    }

    /// The limits of events held above a gap, in number and in bytes. Further events stay uncovered, and are fetched
    /// when the gap is filled.
    static let heldMaxEvents = 20_000
    /// The largest number of ranges that are proven with gaps between them. Each commit writes all of them.
    static let rangesMax = 1_000
    static let heldMaxBytes = 32 << 20

    private(set) var fold: Fold
    /// The number of partitions of the log.
    let partitions: Int
    /// The seqs that are proven.
    private(set) var covered: SeqRanges
    /// The last seq of the partition that this device has heard of.
    private(set) var head: Seq
    /// The last seq that the present subscription has proven; nil: there is no live one.
    private(set) var proven: Seq?
    /// The seq of a barrier of a later version: nothing from this seq on can be read. Nil: there is none.
    private(set) var stoppedAt: Seq?
    /// The event that was folded last since the view was made; nil if there is none.
    private(set) var last: DeliveredEvent?
    /// The proof of an earlier run; nil if everything came from a snapshot.
    private var restoredWitness: ClientFrame.Witness?

    private var held: ArraySlice<DeliveredEvent> = []
    private var heldBytes = 0
    private var rules: PartitionRules
    private var event = ParsedEvent()

    /// Creates a view that continues from a fold: an empty one, or that of a snapshot.
    ///
    /// - Parameters:
    ///   - fold: the fold.
    ///   - partitions: the number of partitions of the log.
    ///   - witness: the last record that the fold has read; nil if it is empty or came from a snapshot.
    init(_ fold: Fold, partitions: Int, witness: ClientFrame.Witness? = nil) {
        self.fold = fold
        self.partitions = partitions
        restoredWitness = witness
        covered = fold.seq >= 0 ? SeqRanges([0...fold.seq]) : SeqRanges()
        head = fold.seq
        rules = PartitionRules(partition: fold.partition, of: partitions, phase: .open)
    }

    /// The last seq up to which everything is covered and folded.
    var seq: Seq { fold.seq }

    /// The missing seqs up to the head.
    var gaps: SeqRanges { head >= 0 ? covered.gaps(in: 0...head) : SeqRanges() }

    /// The proof to a node that both have read the same log: the seq of the last folded event and the hash of its
    /// record.
    var witness: ClientFrame.Witness? {
        last.map { last in
            let hash = last.value.withUnsafeBytes { value in
                fold.stream.withKey { FNV1a.record(key: $0, value: value) }
            }
            return ClientFrame.Witness(seq: last.seq, hash: hash)
        } ?? restoredWitness
    }

    /// The number of events that wait above a gap.
    var heldCount: Int { held.count }

    // MARK: Steps

    /// Called when a subscription has begun: pushed frames prove seqs from `after + 1` on. Heads that earlier nodes
    /// have named are forgotten, because one of them may have been invented.
    mutating func subscribed(after: Seq, head: Seq) {
        proven = after
        self.head = max(covered.last ?? .none, head, after)
    }

    /// Called when a poll has named the head of the partition. There is no subscription.
    mutating func polled(head: Seq) {
        proven = nil
        self.head = max(covered.last ?? .none, head)
    }

    /// Called when the subscription has ended.
    mutating func unsubscribed(head: Seq? = nil) {
        proven = nil
        if let head { self.head = max(self.head, head) }
    }

    /// Applies a frame that proves `from ... to`. Returns false, and applies nothing, if its seqs or events contradict
    /// each other. `isPushed`: true if the frame came with the subscription and not as an answer.
    mutating func received(
        _ frame: ServerFrame.Events,
        isPushed: Bool,
        owns: (Site) -> Bool,
        _ progress: inout Progress
    ) -> Bool {
        let (from, to) = (frame.from, frame.to)
        guard from >= 0, to >= from - 1, to <= largestInteger else { return false }
        var last = from - 1
        for event in frame.events {
            guard event.seq > last, event.seq <= to else { return false }
            last = event.seq
        }
        head = max(head, to)
        if isPushed, let proven { self.proven = max(proven, to) }
        guard from <= to, stoppedAt == nil else { return true }
        if held.isEmpty, from <= seq + 1 {
            let reached = seq
            covered.insert(from...to)
            for event in frame.events where event.seq > reached {
                progress.received.append(event)
                step(event, owns: owns, &progress)
            }
        } else {
            guard hold(frame, &progress) else { return true }
            covered.insert(from...to)
        }
        drain(owns: owns, &progress)
        return true
    }

    /// Called when the subscription has proven all seqs up to `seq`.
    mutating func upto(_ seq: Seq, owns: (Site) -> Bool, _ progress: inout Progress) {
        guard let proven, seq > proven, seq <= largestInteger, stoppedAt == nil else { return }
        self.proven = seq
        head = max(head, seq)
        covered.insert(proven + 1...seq)
        drain(owns: owns, &progress)
    }

    /// Covers all seqs up to `seq`, because a node has the same state as of that seq. Without effect while events are
    /// held, or after a barrier that cannot be read.
    mutating func cover(to seq: Seq) {
        guard seq > self.seq, seq <= largestInteger, held.isEmpty, stoppedAt == nil else { return }
        covered.insert(0...seq)
        head = max(head, seq)
        fold.advance(to: covered.contiguous(after: -1))
    }

    /// True if `upto` with this seq of the partition would prove nothing new.
    func isProven(to seq: Seq, of partition: Int) -> Bool {
        guard fold.partition == partition, let proven else { return true }
        return proven >= seq
    }

    /// Replaces the fold by a snapshot with a higher seq, and keeps the events held above it. Returns false if the
    /// snapshot is not higher. `isNeeded`: true to accept a snapshot with the same seq too.
    mutating func install(
        _ snapshot: Fold,
        isNeeded: Bool = false,
        owns: (Site) -> Bool,
        _ progress: inout Progress
    ) -> Bool {
        guard snapshot.epoch == fold.epoch, snapshot.seq > seq || isNeeded && snapshot.seq == seq else { return false }
        fold = snapshot
        last = nil
        restoredWitness = nil
        head = max(head, snapshot.seq)
        if snapshot.seq >= 0 { covered.insert(0...snapshot.seq) }
        while let first = held.first, first.seq <= snapshot.seq { release(first) }
        drain(owns: owns, &progress)
        return true
    }

    /// Restores the events that the store held after the fold, in order, and the ranges that they prove. The queue has
    /// processed them before they were stored.
    mutating func restore(_ events: [DeliveredEvent], covered: SeqRanges) {
        for event in events where event.seq > seq && covered.contains(event.seq) {
            held.append(event)
            heldBytes += event.value.count
        }
        self.covered.formUnion(covered)
        head = max(head, self.covered.last ?? .none)
        var progress = Progress()
        drain(owns: { _ in false }, &progress)
    }

    // MARK: Reading

    /// Calls `body` with the fold, for its upkeep in the store. `body` does not change the state.
    mutating func withFold<R>(_ body: (inout Fold) throws(ReelError) -> R) throws(ReelError) -> R { try body(&fold) }

    /// Returns the digest of the folded state.
    mutating func digest() -> UInt64 { fold.digest() }

    /// Returns the sums over all objects.
    mutating func totals() -> FoldTotals { fold.totals() }

    /// Returns the changes of the fold since the last call.
    mutating func takeChanges() -> ReelCore.Changes { fold.takeChanges() }

    // MARK: Folding

    /// Holds the events of the frame that were not covered. Returns false if there is no room.
    private mutating func hold(_ frame: ServerFrame.Events, _ progress: inout Progress) -> Bool {
        let new = frame.events.filter { !covered.contains($0.seq) }
        let bytes = new.reduce(0) { $0 + $1.value.count }
        let fillsFirstHole = frame.from <= seq + 1
        let hasRoom =
            held.count + new.count <= Self.heldMaxEvents && heldBytes + bytes <= Self.heldMaxBytes
            && covered.ranges.count < Self.rangesMax
        guard fillsFirstHole || hasRoom else { return false }
        for event in new { hold(event) }
        heldBytes += bytes
        progress.received += new
        if !fillsFirstHole { progress.seen += new }
        return true
    }

    private mutating func hold(_ event: DeliveredEvent) {
        var index = held.endIndex
        while index > held.startIndex, held[index - 1].seq > event.seq { index -= 1 }
        held.insert(event, at: index)
    }

    private mutating func release(_ first: DeliveredEvent) {
        held.removeFirst()
        // Events removed at the front are released only when the rest is copied.
        if held.isEmpty { held = [] }
        heldBytes -= first.value.count
    }

    /// Folds the events that follow without a gap.
    private mutating func drain(owns: (Site) -> Bool, _ progress: inout Progress) {
        let reached = min(covered.contiguous(after: -1), stoppedAt.map { $0 - 1 } ?? .max)
        while let first = held.first, first.seq <= reached, stoppedAt == nil {
            release(first)
            step(first, owns: owns, &progress)
        }
        if stoppedAt == nil { fold.advance(to: reached) }
    }

    private mutating func step(_ delivered: DeliveredEvent, owns: (Site) -> Bool, _ progress: inout Progress) {
        guard stoppedAt == nil else { return }
        delivered.value.withUnsafeBytes { value in
            switch fold.stream.withKey({ rules.read(key: $0, value: value, into: &event) }) {
            case .event:
                let outcome = fold.apply(event, value, seq: delivered.seq)
                last = delivered
                guard owns(event.site) else {
                    if progress.others != nil, outcome == .applied {
                        for part in event.parts { progress.others?.insert(event.key(of: part, value)) }
                    }
                    return
                }
                let author = EventID(site: event.site, op: event.op)
                progress.own.append(
                    Own(
                        author: author,
                        seq: delivered.seq,
                        outcome: outcome,
                        content: event.content(of: value),
                        by: event.by.map { Array(value[$0]) }
                    )
                )
            case .void, .seed, .barrier, .unknownBarrier:
                // A barrier has another key, which is not delivered with it.
                switch Barrier.read(value) {
                case .known(let barrier): fold.apply(barrier, seq: delivered.seq)
                case .unknown: stop(before: delivered.seq)
                case .none: fold.advance(to: delivered.seq)
                }
            }
        }
    }

    /// Called when another node may serve another record than the barrier at which this view has stopped.
    mutating func resume() { stoppedAt = nil }

    private mutating func stop(before seq: Seq) {
        stoppedAt = seq
        fold.advance(to: seq - 1)
        covered.subtract(seq...largestInteger)
        held = []
        heldBytes = 0
    }
}

extension ParsedEvent {
    /// Returns the event as its author sent it, without the `at` and `by` that the gateway stamped.
    func content(of value: Bytes) -> [UInt8] {
        var content = Array(value)
        if let by {
            // `"by":"…",`
            content.removeSubrange(Int(by.start) - 6..<Int(by.start) + Int(by.count) + 2)
        }
        if at >= 0, let end = content.firstIndex(of: UInt8(ascii: ",")) { content.removeSubrange(1...end) }
        return content
    }
}

extension StreamName {
    /// Calls `body` with the key of the stream's records.
    fileprivate func withKey<R>(_ body: (Bytes) -> R) -> R {
        var text = description
        return text.withUTF8 { body(Bytes($0)) }
    }
}
