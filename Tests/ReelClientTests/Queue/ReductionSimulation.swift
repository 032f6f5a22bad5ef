import ReelCore

@testable import ReelClient

/// A device that publishes offline while other devices write. The same events are kept in two queues. The device
/// reduces one queue, and the other queue contains every event as it was published.
struct ReductionSimulation {
    /// An event as it was published, without reduction.
    struct Published {
        var entry: Outbox.Entry
        /// The number of the entry that carries the event in the reduced queue.
        var carrier: Int64
    }

    /// The kind of outcome of an event.
    enum Class: Equatable {
        case applied, lost, reduced
    }

    /// The result of a queue that was delivered to a fold.
    struct Result {
        var fold: Fold
        var classes: [Int64: Class]
        var sent: Int
    }

    var world: OverlaySimulation
    var published: [Published] = []
    /// The ids of the objects with random ids that the device has made.
    var ids: [String] = []
    var dropped = 0

    init(seed: UInt64) {
        world = OverlaySimulation(seed: seed)
        world.stream.sync.isComplete = true
    }

    /// All ids of objects that events name.
    var allIDs: [String] { OverlaySimulation.ids + ids }

    mutating func chance(_ percent: Int) -> Bool { world.chance(percent) }

    mutating func turn() {
        if chance(20) {
            writeAsOther()
        } else if chance(20) {
            world.fold(Int.random(in: 1...4, using: &world.random))
            note()
        } else {
            publish()
        }
    }

    /// Notes which objects the device holds, as the reduced queue does.
    private mutating func note() {
        world.stream.follow()
        guard let fold = world.stream.fold else { return }
        for index in published.indices {
            let (changes, held) = (published[index].entry.event.changes, published[index].entry.held)
            published[index].entry.held = changes.indices.filter { place in
                let change = changes[place]
                return change.kind != .delete
                    && (held.contains(place) || fold.holds(model: change.model, id: change.id))
            }
        }
    }

    private mutating func publish() {
        let (event, stream) = (ownEvent(), world.stream)
        // A splice that waits is sent in several steps.
        guard let waits = try? stream.checkEffect(of: event, base: stream.seq), waits.isEmpty else { return }
        // The delete of a never sent object is not sent either, alone or in a batch.
        let rest = stream.outbox.withoutCancelled(event)
        let held = rest.changes.indices.filter { place in
            let change = rest.changes[place]
            return change.kind != .delete && stream.fold?.holds(model: change.model, id: change.id) == true
        }
        let isUnwritten = event.single.map(stream.writesNothing) ?? false
        guard let carrier = try? stream.add(event, base: stream.seq, read: nil) else { return }
        if rest.changes.isEmpty { return }
        if isUnwritten { return dropped += 1 }
        if let id = event.single.flatMap({ $0.hasRandomID ? $0.id : nil }) { ids.append(id) }
        let number = Int64(published.count) + 1
        let entry = Outbox.Entry(number: number, event: rest, base: stream.seq, held: held)
        published.append(Published(entry: entry, carrier: carrier))
    }

    private mutating func writeAsOther() {
        let other = world.others.indices.randomElement(using: &world.random)!
        let author = EventID(site: world.others[other], op: world.otherOps[other])
        world.otherOps[other] += 1
        let (fold, base) = (world.truth, world.truth.seq)
        let id = OverlaySimulation.ids.randomElement(using: &world.random)!
        let event =
            change(id, text(of: id, in: fold), isOwn: false).map(SyncEvent.init)
            ?? .insert("m", id: id, ["text": "shared", "n": 1])
        world.append(event.encoded(base: base, author: author))
    }

    // MARK: Events

    private func text(of id: String, in fold: Fold?) -> Int64 {
        let text = fold?.object(model: "m", id: id)?.value("text").flatMap { value in
            value.withUnsafeBytes { JSONValue(parsing: $0)?.string }
        }
        return Int64(text?.unicodeScalars.count ?? 0)
    }

    private mutating func ownEvent() -> SyncEvent {
        if chance(6) { return SyncEvent.insert("m", chance(50) ? ["text": "new", "sum": 2] : [:]) }
        let id = allIDs.suffix(6).randomElement(using: &world.random)!
        let shown = world.shown(Fold.key(model: "m", id: id))?.value("text").flatMap { value in
            value.withUnsafeBytes { JSONValue(parsing: $0)?.string }
        }
        let first = change(id, Int64(shown?.unicodeScalars.count ?? 0))
        guard var first else { return .insert("m", id: id, ["text": "own"]) }
        if chance(5) { first.guards = ["n": world.stream.confirmed("m", id)?.fields["n"]?.seq ?? -1] }
        guard chance(5), let second = change(OverlaySimulation.ids[0], 0) else { return SyncEvent(first) }
        return .batch([first, second])
    }

    /// Returns a change of the object; nil: an insert.
    /// - Parameter isOwn: false for other devices. They make no counter fractional, because sums are then rounded in
    ///   another order. They remove no text, because the first of several splices may then be applied alone.
    private mutating func change(_ id: String, _ length: Int64, isOwn: Bool = true) -> SyncChange? {
        func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &world.random) }
        let small = JSONValue.number(Double(number(0...3)))
        let name = ["n", "o"].randomElement(using: &world.random)!
        switch number(0...29) {
        case 0..<2: return nil
        case 2: return chance(60) ? .delete("m", id: id) : nil
        case 3..<8: return .update("m", id: id, [name: small])
        case 8: return .update("m", id: id, [name: nil])
        case 9: return .update("m", id: id, ["text": !isOwn || chance(70) ? "plain text" : nil])
        // Sometimes a field gets a value of another type.
        case 10:
            let name = ["sum", "set", "text"].randomElement(using: &world.random)!
            let isRemoved = chance(90) && (isOwn || name != "text")
            return .update("m", id: id, [name: isRemoved ? nil : 7])
        case 11..<15:
            let amount = !isOwn || chance(90) ? Double(number(-3...3)) : 0.1
            return .update("m", id: id, operations: ["sum": .increment(amount)])
        case 15..<19:
            let other = JSONValue.number(Double(number(0...3)))
            return .update("m", id: id, operations: ["set": .change(add: [small], remove: [other])])
        case 19: return .update("m", id: id, [name: small], operations: ["sum": .increment(1)])
        default:
            let offset = Int64.random(in: 0...length, using: &world.random)
            let removed = chance(60) ? 0 : Int64.random(in: 0...min(3, length - offset), using: &world.random)
            let text = removed > 0 && chance(50) ? "" : ["a", "bc", "ü👩‍👧"].randomElement(using: &world.random)!
            return .update(
                "m",
                id: id,
                operations: ["text": .splice([TextSplice(at: offset, removing: removed, inserting: text)])]
            )
        }
    }

    // MARK: Delivery

    /// Delivers the reduced queue, and the queue without reduction, each to a copy of the log.
    mutating func deliver() -> (reduced: Result, plain: Result)? {
        world.fold(1_000)
        note()
        guard let fold = world.stream.fold else { return nil }
        _ = world.stream.outbox.takeNotices()
        var reduced = world.stream.outbox
        let entries = published.map(\.entry)
        var plain = Outbox(site: reduced.site, nextOp: reduced.nextOp, entries: entries, seed: 1)
        return (Self.deliver(&reduced, to: fold), Self.deliver(&plain, to: fold))
    }

    private static func deliver(_ outbox: inout Outbox, to confirmed: Fold) -> Result {
        var result = Result(fold: confirmed, classes: [:], sent: 0)
        let window = Outbox.Window(events: 1_000, bytes: 1 << 20)
        while let parcel = outbox.nextBatch(
            window,
            base: confirmed.seq,
            horizon: -1,
            confirmed: confirmed,
            nowMs: .max / 2
        ) {
            for value in parcel.events {
                let outcome = OverlaySimulation.apply(value, to: &result.fold, at: result.fold.seq + 1)
                let op = value.withUnsafeBytes { EventIntake.author(of: $0)?.op }
                guard let entry = outbox.entries.first(where: { $0.author?.op == op }) else { continue }
                if !entry.event.isFiller { result.classes[entry.number] = outcome == .applied ? .applied : .lost }
                result.sent += 1
            }
        }
        for case .settled(let number, let outcome) in outbox.takeNotices() {
            result.classes[number] = outcome == .superseded ? .reduced : .lost
        }
        return result
    }
}
