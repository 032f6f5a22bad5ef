import ReelBase
import ReelCore

@testable import ReelClient

/// A device's queue and a log behind gateways that lose, delay, repeat and refuse events. The store is the list of
/// committed writes. After a kill, only these writes are left.
struct OutboxSimulation {
    struct Record: Equatable {
        var author: EventID
        var content: [UInt8]
        var outcome: Outcome
        /// The name of its author's token.
        var user: String
    }

    enum Answer {
        case ack(EventID, Seq)
        case nack(EventID, ReelError, ref: Int64)
    }

    var random: SeededGenerator
    var outbox: Outbox
    var log: [Record] = []
    var consumedOps: [Site: Op] = [:]
    /// The user with which each site of the log has begun.
    var users: [Site: String] = [:]
    var folded: Seq = .none
    var nowMs: Int64 = 0

    /// True if the device's user sometimes gets another name while the device is off.
    var renames = false
    var user = "ann"
    /// The number of events that were published, and the result of each by the id of its object.
    var count = 0
    var outcomes: [String: PublishOutcome] = [:]
    /// The sites that the device's own fold has.
    var known: [Site: (op: Op, seq: Seq, user: String)] = [:]
    /// The device sends nothing before it has folded this seq.
    var sendsFrom: Seq = .none

    // The store.
    var storedSite: Site?
    var storedNext: Op = 0
    var stored: [Int64: Outbox.Entry] = [:]
    /// The seq of the fold at the last commit. Position and data are stored together.
    var storedFolded: Seq = .none

    // The present gateway: the batches that it has not handled, the answers that it has not sent, and the op that it
    // nacked.
    var inbox: [Outbox.PublishBatch] = []
    var answers: [Answer] = []
    var refusing: [Site: Op] = [:]
    var late: [(EventID, [UInt8], user: String)] = []
    var isConnected = false

    var published: [Int64: SyncEvent] = [:]
    var reduced: Set<Int64> = []
    var refused: Set<Int64> = []
    var settled: [Int64: PublishOutcome] = [:]
    var isStuck = false

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
        outbox = Outbox(seed: seed &+ 1)
        commit()
    }

    mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    mutating func commit() {
        for write in outbox.takeWrites() {
            switch write {
            case .put(let entry): stored[entry.number] = entry
            case .remove(let number, _): stored[number] = nil
            case .site(let site, let next): (storedSite, storedNext) = (site, next)
            }
        }
        storedFolded = folded
        for notice in outbox.takeNotices() {
            if notice == .stuck { isStuck = true }
            guard case .settled(let number, let outcome) = notice else { continue }
            settled[number] = outcome
            if let id = published[number]?.single?.id { outcomes[id] = outcome }
            switch outcome {
            case .superseded: reduced.insert(number)
            case .failed: refused.insert(number)
            default: break
            }
        }
    }

    mutating func publish(_ event: SyncEvent) {
        let number = outbox.add(event, base: folded, isKnown: false)
        commit()
        if outbox.entries.contains(where: { $0.number == number }) { published[number] = event }
    }

    /// Kills the process. Uncommitted writes and the connection are lost.
    mutating func kill() {
        guard let site = storedSite else { return }
        disconnect()
        var entries = stored.values.sorted { $0.number < $1.number }
        for index in entries.indices { entries[index].acked = nil }
        outbox = Outbox(site: site, nextOp: storedNext, entries: entries, seed: random.next())
        folded = storedFolded
        known = [:]
        for seq in 0..<folded + 1 { know(seq) }
        if renames, chance(50) { user = ["ann", "anna", "hanna"].randomElement(using: &random) ?? user }
    }

    private mutating func know(_ seq: Seq) {
        let record = log[Int(seq)]
        if record.outcome == .applied { known[record.author.site] = (record.author.op, seq, record.user) }
    }

    /// Disconnects. Batches at the gateway may still reach the log later, in any order, or never.
    mutating func disconnect() {
        isConnected = false
        for parcel in inbox {
            for bytes in parcel.events where !isBad(bytes) && chance(60) {
                late.append((author(of: bytes), bytes, user))
            }
        }
        inbox = []
        answers = []
        refusing = [:]
    }

    mutating func connect() {
        isConnected = true
        outbox.connected()
        if renames { sendsFrom = Seq(log.count) - 1 }
    }

    mutating func send() {
        guard isConnected || !renames, folded >= sendsFrom else { return }
        if renames {
            outbox.leaveForeignSites { [known, user] site in
                known[site].map { .init(op: $0.op, seq: $0.seq, isForeign: $0.user != user) }
            }
        }
        guard let parcel = outbox.nextBatch(.init(events: 4, bytes: 4_096), base: 0, horizon: -1, nowMs: nowMs) else {
            return
        }
        commit()
        inbox.append(parcel)
    }

    func author(of bytes: [UInt8]) -> EventID {
        let json = bytes.withUnsafeBytes { JSONValue(parsing: $0) }?.object
        let site = json?["site"]?.string.flatMap { Site($0) } ?? Site(high: 0, low: 0)
        return EventID(site: site, op: Op(json?["op"]?.number ?? -1))
    }

    func isBad(_ bytes: [UInt8]) -> Bool { String(decoding: bytes, as: UTF8.self).contains(#""bad":"#) }

    /// Handles one batch at the gateway, as the protocol requires.
    mutating func gatewayTurn(calm: Bool) {
        guard isConnected, !inbox.isEmpty else { return }
        let parcel = inbox.removeFirst()
        // The gateway accepts the whole batch or nothing, and answers in order.
        if parcel.events.contains(where: isBad) {
            for bytes in parcel.events {
                let author = author(of: bytes)
                refusing[author.site] = min(refusing[author.site] ?? author.op, author.op)
                let error = isBad(bytes) ? ReelError(.badEvent, "bad") : ReelError(.gap, "", retryMs: 0)
                answers.append(.nack(author, error, ref: parcel.ref))
            }
            return
        }
        for bytes in parcel.events {
            let author = author(of: bytes)
            if let op = refusing[author.site], author.op != op {
                answers.append(.nack(author, ReelError(.gap, "", retryMs: 0), ref: parcel.ref))
                continue
            }
            refusing[author.site] = nil
            if !calm, chance(10) {
                refusing[author.site] = author.op
                if chance(50) { append(author, bytes, user) }
                answers.append(.nack(author, ReelError(.logUnavailable, "", retryMs: 5), ref: parcel.ref))
            } else {
                answers.append(.ack(author, append(author, bytes, user)))
                if !calm, chance(10) { append(author, bytes, user) }
            }
        }
    }

    @discardableResult
    mutating func append(_ author: EventID, _ bytes: [UInt8], _ user: String) -> Seq {
        let op = consumedOps[author.site] ?? -1
        var outcome: Outcome = author.op <= op ? .duplicate : author.op == op + 1 ? .applied : .gap
        if let owner = users[author.site], owner != user { outcome = .foreign }
        if outcome == .applied { (consumedOps[author.site], users[author.site]) = (author.op, user) }
        log.append(Record(author: author, content: bytes, outcome: outcome, user: user))
        return Seq(log.count - 1)
    }

    mutating func lateTurn() {
        guard !late.isEmpty else { return }
        let (author, bytes, user) = late.remove(at: Int.random(in: 0..<late.count, using: &random))
        append(author, bytes, user)
    }

    mutating func answerTurn() {
        guard isConnected, !answers.isEmpty else { return }
        switch answers.removeFirst() {
        case .ack(let author, let seq): outbox.acked(author, seq: seq, folded: folded, nowMs: nowMs)
        case .nack(let author, let error, let ref): outbox.nacked(author, error, ref: ref, nowMs: nowMs)
        }
        commit()
        guard isStuck else { return }
        isStuck = false
        disconnect()
        connect()
    }

    mutating func foldTurn() {
        guard folded < Seq(log.count) - 1 else { return }
        folded += 1
        let record = log[Int(folded)]
        know(folded)
        let isOthersCopy = record.outcome == .foreign && record.user != user
        if !isOthersCopy, outbox.owns(record.author.site) {
            outbox.folded(
                record.author,
                seq: folded,
                record.outcome,
                content: record.content,
                base: folded,
                nowMs: nowMs
            )
        }
        if chance(70) { commit() }
    }

    mutating func randomTurn() {
        nowMs += Int64.random(in: 0...3, using: &random)
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<18: publish(randomEvent())
        case 18..<38: send()
        case 38..<55: gatewayTurn(calm: false)
        case 55..<70: answerTurn()
        case 70..<86: foldTurn()
        case 86..<90: lateTurn()
        case 90..<95: isConnected ? disconnect() : connect()
        case 95..<97: kill()
        default: if !isConnected { connect() }
        }
    }

    /// Stops all faults, and returns true if every event gets a result.
    mutating func drain() -> Bool {
        if !isConnected { connect() }
        for _ in 0..<20_000 {
            nowMs += 50
            send()
            gatewayTurn(calm: true)
            answerTurn()
            while folded < Seq(log.count) - 1 { foldTurn() }
            lateTurn()
            commit()
            if outbox.entries.isEmpty, late.isEmpty, folded == Seq(log.count) - 1 { return true }
        }
        return false
    }

    mutating func randomEvent() -> SyncEvent {
        // No event is merged, so that each event can be counted in the log.
        if renames {
            defer { count += 1 }
            return .insert("m", id: "\(count)")
        }
        let id = String(Int.random(in: 0..<4, using: &random))
        let value = JSONValue.number(Double(outbox.nextNumber))
        return switch Int.random(in: 0..<10, using: &random) {
        case 0..<3: .insert("m", id: id, ["n": value])
        case 3..<8: .update("m", id: id, ["n": value])
        case 8: .update("m", id: id, ["bad": value])
        default: .delete("m", id: id)
        }
    }
}
