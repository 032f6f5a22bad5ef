import ReelBase
import ReelCore

@testable import ReelClient

/// One device with a queue, a log that other devices write to, and the objects that the device shows. The log accepts,
/// repeats, loses and refuses events of the device. The device is killed and starts again.
struct OverlaySimulation {
    static let name = StreamName("s")!
    static let ids = ["0", "1", "2"]

    var random: SeededGenerator
    var stream: StreamState
    var log: [[UInt8]] = []
    /// The fold of the whole log.
    var truth = Fold(stream: name, partition: 0, epoch: Epoch(1))
    let others: [Site]
    var otherOps: [Op]
    /// The batches that were handed over and have not arrived.
    var parcels: [Outbox.PublishBatch] = []
    var outcomes: [PublishOutcome] = []
    /// The objects of a reader of changes that reads only the objects in the batches of changes.
    var told: [Overlay.Key: ObjectState] = [:]
    /// True if the reader must read all objects again.
    var isReset = false
    /// Objects in a batch of changes that own events had touched and that were unchanged for the reader.
    var falseNews: [Overlay.Key] = []
    var feed: Feed<ObjectChangeBatch>?

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
        others = (0..<2).map { [random] _ in
            var random = random
            return Site.random(using: &random)
        }
        otherOps = [0, 0]
        stream = Self.device(Outbox(seed: seed &+ 1), truth)
        feed = stream.feeds.make()
    }

    static func device(_ outbox: Outbox, _ fold: Fold) -> StreamState {
        let stream = StreamState(name, start: .beginning, row: 0, outbox: outbox)
        var own = Fold(stream: name, partition: 0, epoch: Epoch(1), listsChanges: true)
        if fold.seq >= 0 { own = fold }
        stream.view = View(own, partitions: 1)
        stream.overlay = Overlay(of: outbox, over: own, stream: name)
        _ = stream.look()
        return stream
    }

    mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    // MARK: Turns

    mutating func turn(publishing: (inout OverlaySimulation) -> Void = { $0.publish() }) {
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<30: publishing(&self)
        case 30..<45: send()
        case 45..<60: arrive(calm: false)
        case 60..<75: write(others.indices.randomElement(using: &random)!)
        case 75..<92: fold(Int.random(in: 1...4, using: &random))
        case 92..<94: stream.outbox.connected()
        case 94..<96: restart()
        case 96..<98: loadSnapshot()
        default: parcels = []
        }
    }

    mutating func publish() {
        let event = randomEvent(visible: true)
        _ = stream.outbox.add(event, base: stream.seq) { [stream] change in
            stream.fold?.holds(model: change.model, id: change.id) == true
        }
    }

    /// Publishes as an app does: an event that the device's own view rejects throws. Returns the number of a waiting
    /// entry.
    mutating func publishChecked() -> Int64? {
        let refused = Set(stream.look().laid.values.filter { $0.refusal != nil }.flatMap(\.keys))
        let id = Self.ids.first { refused.contains(Fold.key(model: "m", id: $0)) }
        var event = chance(30) ? guardedTitle() : randomEvent(visible: true)
        if let id, chance(60) { event = .update("m", id: id, operations: ["text": .splice([splice(id, true)])]) }
        guard let number = try? stream.add(event, base: stream.seq, read: nil) else { return nil }
        return stream.outbox.entries.last?.waits?.isEmpty == false ? number : nil
    }

    /// Settles the entries that a snapshot has covered, as after an answer of a node.
    mutating func resolve() {
        for number in stream.outbox.entries.filter({ $0.covered != nil }).map(\.number) {
            stream.outbox.resolve(number, .unknown)
        }
    }

    mutating func send() {
        resolve()
        stream.placeReleased()
        let window = Outbox.Window(events: 3, bytes: 4_096)
        let parcel = stream.outbox.nextBatch(
            window,
            base: stream.seq,
            horizon: -1,
            confirmed: stream.fold,
            nowMs: .max / 2
        )
        if let parcel { parcels.append(parcel) }
    }

    /// Delivers a batch to the log, which accepts or refuses it.
    mutating func arrive(calm: Bool) {
        guard !parcels.isEmpty else { return }
        let parcel = parcels.removeFirst()
        for value in parcel.events {
            let author = author(of: value)
            let isBad = String(decoding: value, as: UTF8.self).contains(#""bad""#)
            if isBad {
                stream.outbox.nacked(author, ReelError(.tooLarge, "bad"), ref: parcel.ref, nowMs: 0)
                return
            }
            append(value)
            if calm || chance(80) {
                let seq = Seq(log.count - 1)
                stream.outbox.acked(author, seq: seq, folded: stream.seq, nowMs: 0)
            }
            if !calm, chance(10) { append(value) }
        }
    }

    /// Appends an event of another device.
    mutating func write(_ other: Int) {
        let event = randomEvent(visible: false)
        let author = EventID(site: others[other], op: otherOps[other])
        otherOps[other] += 1
        append(event.encoded(base: truth.seq, author: author))
    }

    mutating func append(_ value: [UInt8]) {
        log.append(value)
        _ = Self.apply(value, to: &truth, at: Seq(log.count - 1))
    }

    /// Folds the next events of the log.
    mutating func fold(_ count: Int) {
        let to = min(stream.seq + Seq(count), Seq(log.count - 1))
        guard to > stream.seq else { return }
        let events = (stream.seq + 1...to).map { DeliveredEvent(seq: $0, value: log[Int($0)]) }
        let frame = ServerFrame.Events(stream: Self.name, from: stream.seq + 1, to: to, events: events)
        var progress = View.Progress()
        _ = stream.view?.received(frame, isPushed: false, owns: stream.outbox.owns, &progress)
        for own in progress.own {
            let (author, seq) = (own.author, own.seq)
            stream.outbox.folded(author, seq: seq, own.outcome, content: own.content, base: stream.seq, nowMs: 0)
        }
    }

    mutating func loadSnapshot() {
        guard truth.seq > stream.seq, let lines = try? stream.view.map({ _ in try snapshot() }) else { return }
        let fold = lines.withUnsafeBytes { try? Fold(snapshot: $0, listsChanges: true) }
        var progress = View.Progress()
        guard let fold, stream.view?.install(fold, owns: stream.outbox.owns, &progress) == true else { return }
        stream.outbox.bootstrapped(consumed: { site in fold.site(site).map { ($0.op, $0.seq) } }, seq: fold.seq)
        stream.replacement = .whole
        isReset = true
    }

    private func snapshot() throws(ReelError) -> [UInt8] {
        var (lines, truth) = ([UInt8](), truth)
        var writer = try truth.snapshot()
        writer.writeAll(to: &lines)
        return lines
    }

    /// Ends the process between two commits, and starts it again with the content of its store.
    mutating func restart() {
        guard let fold = stream.view?.fold else { return }
        stream.placeReleased()
        var entries = Array(stream.outbox.entries)
        for index in entries.indices { (entries[index].acked, entries[index].covered) = (nil, nil) }
        let (site, nextOp) = (stream.outbox.site, stream.outbox.nextOp)
        var outbox = Outbox(site: site, nextOp: nextOp, entries: entries, seed: random.next())
        outbox.cover { site in fold.site(site).map { ($0.op, $0.seq) } }
        parcels = []
        look()
        stream = Self.device(outbox, fold)
        feed = stream.feeds.make()
    }

    /// Stops all faults. Returns false if the queue does not become empty.
    mutating func drain() -> Bool {
        for _ in 0..<2_000 {
            if stream.outbox.entries.isEmpty, stream.seq == truth.seq { return true }
            if parcels.isEmpty { stream.outbox.connected() }
            send()
            arrive(calm: true)
            fold(5)
            look()
        }
        return false
    }

    // MARK: The shown objects

    /// Reads the objects in the reader's batch of changes.
    mutating func look() {
        let before = isReset ? nil : stream.overlay
        stream.follow()
        let all = isReset ? Set(Self.ids.map { Fold.key(model: "m", id: $0) }) : []
        for key in stream.news.union(all) {
            let shown = shown(key)
            if before?.covers(key) == true, told[key] == shown { falseNews.append(key) }
            told[key] = shown
        }
        stream.news = []
        isReset = false
        for case .settled(_, let outcome) in stream.outbox.takeNotices() { outcomes.append(outcome) }
    }

    func shown(_ key: Overlay.Key) -> ObjectState? {
        let overlay = stream.look()
        return overlay.covers(key) ? overlay.object(key) : stream.fold?.object(key)
    }

    /// Returns the expected objects: the confirmed fold after the events of the queue. Nil: the fold has already
    /// consumed an event of the queue.
    func expected() -> Fold? {
        guard var fold = stream.fold else { return nil }
        var ops: [Site: Op] = [:]
        for var entry in stream.outbox.entries where entry.covered == nil {
            let gone = entry.held.filter { place in
                let change = entry.event.changes[place]
                return stream.fold?.holds(model: change.model, id: change.id) == false
            }
            if entry.author == nil, !gone.isEmpty {
                let rest = entry.event.changes.indices.filter { !gone.contains($0) }
                // An event without a text that later splices depend on is not sent. Otherwise a filler with the same
                // texts is sent.
                guard SyncEvent(batch: rest.map { entry.event.changes[$0] }).namesText else { continue }
                entry.event = entry.event.filler
            }
            let site = entry.author?.site ?? stream.outbox.site
            let op = entry.author?.op ?? ops[site] ?? stream.outbox.nextOp
            ops[site] = op + 1
            let base = entry.event.dependsOnBase ? entry.base : fold.seq
            let value = entry.event.encoded(base: base, author: EventID(site: site, op: op))
            switch Self.apply(value, to: &fold, at: fold.seq + 1) {
            case .applied, .rejected: break
            default: return nil
            }
        }
        return fold
    }

    static func apply(_ value: [UInt8], to fold: inout Fold, at seq: Seq) -> Outcome {
        var event = ParsedEvent()
        return value.withUnsafeBytes { bytes in
            guard (try? event.parse(bytes)) != nil else { return .void }
            return fold.apply(event, bytes, seq: seq)
        }
    }

    private func author(of value: [UInt8]) -> EventID {
        let author = value.withUnsafeBytes { EventIntake.author(of: $0) }
        return EventID(site: author?.site ?? stream.outbox.site, op: author?.op ?? -1)
    }

    // MARK: Events

    mutating func randomEvent(visible: Bool) -> SyncEvent {
        let number = JSONValue.number(Double(Int.random(in: 0..<100, using: &random)))
        let id = Self.ids.randomElement(using: &random)!
        switch Int.random(in: 0..<20, using: &random) {
        case 0..<4: return .insert("m", id: id, ["n": number, "text": "ab"])
        case 4..<7: return .update("m", id: id, ["n": number])
        case 7: return .update("m", id: id, ["text": "plain"])
        case 8: return .delete("m", id: id)
        case 9: return .update("m", id: id, operations: ["sum": .increment(1)])
        case 10: return .update("m", id: id, operations: ["set": .change(add: [number], remove: ["x"])])
        case 11..<15: return .update("m", id: id, operations: ["text": .splice([splice(id, visible)])])
        case 15..<18:
            let second = Self.ids.randomElement(using: &random)!
            return .batch([.update("m", id: id, ["n": number]), .insert("m", id: second, ["of": .string(id)])])
        case 18:
            let seq = stream.confirmed("m", id)?.fields["n"]?.seq ?? -1
            return SyncEvent(SyncChange.update("m", id: id, ["n": number, "note": "g"]).guarded(["n": seq]))
        default: return visible ? .update("m", id: id, ["bad": number, "n": number]) : .delete("m", id: id)
        }
    }

    /// A write of a text with a guard: no other device has changed the object's number.
    private mutating func guardedTitle() -> SyncEvent {
        let id = Self.ids.randomElement(using: &random)!
        let seq = stream.confirmed("m", id)?.fields["n"]?.seq ?? -1
        return SyncEvent(SyncChange.update("m", id: id, ["text": "title"]).guarded(["n": seq]))
    }

    /// An edit of the text that its author sees.
    private mutating func splice(_ id: String, _ visible: Bool) -> TextSplice {
        let state = visible ? shown(Fold.key(model: "m", id: id)) : truth.object(model: "m", id: id)
        let text = state?.value("text").flatMap { $0.withUnsafeBytes { JSONValue(parsing: $0) }?.string } ?? ""
        let count = Int64(text.unicodeScalars.count)
        let offset = Int64.random(in: 0...count, using: &random)
        let removed = Int64.random(in: 0...min(2, count - offset), using: &random)
        return TextSplice(at: offset, removing: removed, inserting: visible ? "own" : "other")
    }
}
