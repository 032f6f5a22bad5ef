internal import ReelCore

/// What this device holds of one stream: which seqs are proven, and the fold of those that follow each other from the
/// beginning.
///
/// A pure machine. Seqs are covered by frames that prove them, by `upto`, and by a snapshot below them; what lies above
/// a hole is held until the hole is filled, and never folded before. What is missing comes from subtraction,
/// `[0…head] − covered`, so it does not matter why it is missing.
struct View: Sendable {
    /// An event of an own site that was folded.
    struct Own: Sendable {
        var author: Event.Author
        var seq: Seq
        var outcome: Outcome
        /// Its bytes as its author sent them: without what the gateway stamped.
        var content: [UInt8]
        /// The name that the gateway gave it, as it stands between the quotes of canonical JSON.
        var by: [UInt8]?
    }

    /// What a step brought.
    struct Progress: Sendable {
        /// Newly covered events, in no order: what the store keeps.
        var received: [DeliveredEvent] = []
        /// Those of them above a hole: known, but not folded yet.
        var seen: [DeliveredEvent] = []
        /// Events of own sites that were folded, in order.
        var own: [Own] = []
    }

    /// More is not held above a hole: it stays uncovered, and is fetched when the hole is filled.
    static let heldMaxEvents = 20_000
    static let heldMaxBytes = 32 << 20

    private(set) var fold: Fold
    /// How many partitions the log has.
    let partitions: Int
    /// The seqs that are proven.
    private(set) var covered: SeqRanges
    /// The last seq of the partition that this device has heard of.
    private(set) var head: Seq
    /// The last seq that the present subscription has proven; nil: there is no live one.
    private(set) var proven: Seq?
    /// A barrier of a later version: nothing at this seq or behind it can be read.
    private(set) var stoppedAt: Seq?
    /// The event that was folded last; nil where a snapshot has brought all that there is.
    private(set) var last: DeliveredEvent?

    private var held: ArraySlice<DeliveredEvent> = []
    private var heldBytes = 0
    private var rules: PartitionRules
    private var event = ParsedEvent()

    /// A view that goes on from a fold: an empty one, or that of a snapshot.
    init(_ fold: Fold, partitions: Int) {
        self.fold = fold
        self.partitions = partitions
        covered = fold.seq >= 0 ? SeqRanges([0...fold.seq]) : SeqRanges()
        head = fold.seq
        rules = PartitionRules(partition: fold.partition, of: partitions, phase: .open)
    }

    /// The last seq up to which all is covered and folded.
    var seq: Seq { fold.seq }

    /// What is missing up to the head.
    var gaps: SeqRanges { head >= 0 ? covered.gaps(in: 0...head) : SeqRanges() }

    /// What proves to a node that both have read the same: the last event that was folded, by its record's hash.
    var witness: ClientFrame.Witness? {
        last.map { last in
            let hash = last.value.withUnsafeBytes { value in
                fold.stream.withKey { FNV1a.record(key: $0, value: value) }
            }
            return ClientFrame.Witness(seq: last.seq, hash: hash)
        }
    }

    /// How many events wait above a hole.
    var heldCount: Int { held.count }

    // MARK: Steps

    /// A subscription stands: what is pushed proves seqs from `after + 1` on. What earlier nodes have said of the head
    /// does not count any longer: one of them may have invented it.
    mutating func subscribed(after: Seq, head: Seq) {
        proven = after
        self.head = max(covered.last ?? .none, head, after)
    }

    /// A node without a subscription has said where the partition ends.
    mutating func polled(head: Seq) {
        proven = nil
        self.head = max(covered.last ?? .none, head)
    }

    /// The subscription has ended.
    mutating func unsubscribed(head: Seq? = nil) {
        proven = nil
        if let head { self.head = max(self.head, head) }
    }

    /// A frame proves `from ... to`. `isPushed`: it came with the subscription and not as an answer. False: it is no
    /// frame of this stream, because seqs or events contradict each other; nothing was taken of it.
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

    /// The subscription proves all up to seq.
    mutating func upto(_ seq: Seq, owns: (Site) -> Bool, _ progress: inout Progress) {
        guard let proven, seq > proven, seq <= largestInteger, stoppedAt == nil else { return }
        self.proven = seq
        head = max(head, seq)
        covered.insert(proven + 1...seq)
        drain(owns: owns, &progress)
    }

    /// A snapshot takes the place of the fold, if it reaches further; what is held above it stays. False: it does not.
    /// `isNeeded`: also if it reaches as far.
    mutating func install(
        _ snapshot: Fold,
        isNeeded: Bool = false,
        owns: (Site) -> Bool,
        _ progress: inout Progress
    ) -> Bool {
        guard snapshot.epoch == fold.epoch, snapshot.seq > seq || isNeeded && snapshot.seq == seq else { return false }
        fold = snapshot
        last = nil
        head = max(head, snapshot.seq)
        covered.insert(0...snapshot.seq)
        while let first = held.first, first.seq <= snapshot.seq { release(first) }
        drain(owns: owns, &progress)
        return true
    }

    /// What a store held of the stream behind the fold: events in order, and the ranges that they prove. The queue was
    /// told of them before they were stored.
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

    /// The digest of the folded state.
    mutating func digest() -> UInt64 { fold.digest() }

    /// What has changed in the fold since the last call.
    mutating func takeChanges() -> ReelCore.Changes { fold.takeChanges() }

    // MARK: Folding

    /// Holds those events of the frame that were not covered. False: no room.
    private mutating func hold(_ frame: ServerFrame.Events, _ progress: inout Progress) -> Bool {
        let new = frame.events.filter { !covered.contains($0.seq) }
        let bytes = new.reduce(0) { $0 + $1.value.count }
        let fillsFirstHole = frame.from <= seq + 1
        guard fillsFirstHole || held.count + new.count <= Self.heldMaxEvents && heldBytes + bytes <= Self.heldMaxBytes
        else { return false }
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
        // What was removed in front is held until the rest is copied.
        if held.isEmpty { held = [] }
        heldBytes -= first.value.count
    }

    /// Folds what follows without a hole.
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
                guard owns(event.site) else { return }
                let author = Event.Author(site: event.site, op: event.op)
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

    /// Another node may say something else than the barrier at which this view has stopped.
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
    /// The event as its author sent it, without the `at` and `by` that the gateway stamped.
    fileprivate func content(of value: Bytes) -> [UInt8] {
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
    /// Lends the key of the stream's records.
    fileprivate func withKey<R>(_ body: (Bytes) -> R) -> R {
        var text = description
        return text.withUTF8 { body(Bytes($0)) }
    }
}
