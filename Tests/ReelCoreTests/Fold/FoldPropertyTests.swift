import ReelCheck
import TestSupport
import Testing

@testable import ReelCore

/// Tests properties that must hold for every history. Each run prints its seed.
@Suite struct FoldPropertyTests {
    private static let histories: Range<UInt64> = 0..<UInt64(2 * effort)

    private func read(_ lines: [UInt8]) throws -> Fold {
        try lines.withUnsafeBytes { try Fold(snapshot: $0) }
    }

    @Test("the fold and the naive fold agree on every outcome, state and digest", arguments: histories)
    func agreesWithTheJudge(number: UInt64) throws {
        var history = FoldHistory(seed: TestSeed.value &+ number)
        var naive = NaiveFold(epoch: history.fold.epoch.description, partition: 0, of: 1)
        for step in 0..<400 {
            if step % 80 == 79 {
                history.jump()
                var fold = history.fold
                naive = NaiveFold(try NaiveSnapshot(try fold.lines()), of: 1)
            }
            let record = history.step()
            let judgement = naive.apply(seq: record.seq, key: Array("todo".utf8), value: record.value)
            let outcome = record.outcome.description
            guard outcome == judgement?.description else {
                Issue.record(
                    "seq \(record.seq): \(outcome), judge \(String(describing: judgement)), \(String(decoding: record.value, as: UTF8.self))"
                )
                return
            }
            var fold = history.fold
            guard Hex64.text(fold.digest()) == naive.digest(of: "todo") else {
                Issue.record("digests differ behind \(String(decoding: record.value, as: UTF8.self))")
                return
            }
            guard step % 20 == 0 else { continue }
            let ours = try NaiveSnapshot(try fold.lines())
            #expect(ours.normalForm == naive.normalForm(of: "todo"))
        }
        let outcomes = Set(history.records.map(\.outcome.description))
        #expect(outcomes.count > 8)
    }

    @Test("a fold from a snapshot at any point continues like the original fold", arguments: histories)
    func continuesFromSnapshots(number: UInt64) throws {
        var history = FoldHistory(seed: TestSeed.value &+ 1_000 &+ number)
        var (other, loaded) = (history.fold, history.fold)
        var event = ParsedEvent()
        for step in 0..<300 {
            if step % 70 == 50 { history.jump() }
            if step % 40 == 10 || step % 70 == 50 {
                var fold = history.fold
                let lines = try fold.lines()
                other = try read(lines)
                #expect(try other.lines() == lines)
                loaded = try Self.reloaded(fold)
                #expect(try loaded.lines() == lines)
            }
            guard step >= 10 else {
                history.step()
                continue
            }
            let record = history.step()
            #expect(other.fold(record.value, seq: record.seq, &event) == record.outcome)
            #expect(loaded.fold(record.value, seq: record.seq, &event) == record.outcome)
            var fold = history.fold
            #expect(other.digest() == fold.digest())
            #expect(loaded.digest() == fold.digest())
        }
    }

    @Test("a delta brings any fold between its ends to the state at its end", arguments: histories)
    func deltas(number: UInt64) throws {
        var history = FoldHistory(seed: TestSeed.value &+ 2_000 &+ number)
        for _ in 0..<60 { history.step() }
        for round in 0..<3 {
            if round > 0 { history.jump() }
            var cuts = [history.fold]
            for _ in 0..<45 {
                history.step()
                cuts.append(history.fold)
            }
            var end = history.fold
            let lines = try end.lines()
            for (index, cut) in cuts.enumerated() where cut.seq >= end.horizon {
                for base in [index, index / 2] where cuts[base].seq >= end.horizon {
                    var fold = cut
                    let delta = try end.lines(after: cuts[base].seq)
                    try delta.withUnsafeBytes { try fold.apply(delta: $0) }
                    #expect(try fold.lines() == lines)
                }
            }
        }
    }

    @Test("resends and duplicates between the events change nothing", arguments: histories)
    func resends(number: UInt64) throws {
        var history = FoldHistory(seed: TestSeed.value &+ 3_000 &+ number)
        for _ in 0..<300 { history.step() }
        var random = history.random
        var event = ParsedEvent()
        // The gaps between the seqs leave room for the repeated records. Only the order of the seqs, and their relation
        // to the bases, affect the fold.
        var plain = Fold(stream: FoldHistory.stream, partition: 0, epoch: FoldHistory.epoch)
        var noisy = plain
        var seen: [[UInt8]] = []
        for record in history.records {
            while noisy.seq < record.seq - 1, let again = seen.randomElement(using: &random) {
                let outcome = noisy.fold(again, seq: noisy.seq + 1, &event)
                #expect(outcome == .duplicate || outcome == .gap || outcome == .foreign)
            }
            let outcome = plain.fold(record.value, seq: record.seq, &event)
            #expect(noisy.fold(record.value, seq: record.seq, &event) == outcome)
            switch outcome {
            case .applied, .rejected, .duplicate: seen.append(record.value)
            default: break
            }
        }
        #expect(try plain.lines() == noisy.lines())
    }

    @Test("rows that are written as they change make the same fold", arguments: histories)
    func rows(number: UInt64) throws {
        var history = FoldHistory(seed: TestSeed.value &+ 4_000 &+ number, listsChanges: true)
        var store = RowStore()
        for step in 0..<300 {
            if step % 80 == 70 { history.jump() }
            history.step()
            if history.random.oneIn(9) {
                history.withFold { store.write(&$0) }
                var fold = history.fold
                var loaded = try store.load()
                #expect(try loaded.lines() == fold.lines())
                #expect(store.objects.count == fold.objectCount)
                #expect(store.sites.count == fold.sites().count)
            }
        }
    }

    private static func reloaded(_ fold: Fold) throws -> Fold {
        var store = RowStore()
        var fold = fold
        store.writeAll(&fold)
        return try store.load()
    }
}

/// The rows that a node stores for a stream.
struct RowStore {
    var head: [UInt8] = []
    var objects: [[UInt8]: [UInt8]] = [:]
    var sites: [Site: [UInt8]] = [:]
    var seq = Seq.none

    mutating func write(_ fold: inout Fold) {
        let changes = fold.takeChanges()
        for key in changes.forgottenObjects { objects[key] = nil }
        for site in changes.forgottenSites { sites[site] = nil }
        write(fold, changes.objects, changes.sites)
    }

    mutating func writeAll(_ fold: inout Fold) {
        write(fold, fold.slots(), fold.sites())
    }

    private mutating func write(_ fold: Fold, _ slots: [Int], _ names: [Site]) {
        for slot in slots {
            var row = [UInt8]()
            fold.writeRow(ofObject: slot, to: &row)
            objects[fold.key(ofObject: slot)] = row
        }
        for site in names {
            var row = [UInt8]()
            fold.writeRow(ofSite: site, to: &row)
            sites[site] = row
        }
        head = []
        fold.writeHead(to: &head)
        seq = fold.seq
    }

    func load() throws -> Fold {
        var loader = try head.withUnsafeBytes {
            try FoldLoader(
                stream: FoldHistory.stream,
                partition: 0,
                epoch: FoldHistory.epoch,
                seq: seq,
                head: $0
            )
        }
        for (key, row) in objects {
            try key.withUnsafeBytes { key in try row.withUnsafeBytes { try loader.add(objectKey: key, row: $0) } }
        }
        for (site, row) in sites { try row.withUnsafeBytes { try loader.add(site: site, row: $0) } }
        return loader.finish()
    }
}
