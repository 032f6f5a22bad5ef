import Foundation
import ReelCore
import ReelLog
import TestSupport
import Testing

@testable import ReelCheck

/// Tests the change to a new epoch. The naive fold checks that the new epoch has the state of the old one, whatever
/// happened during the change.
@Suite(.timeLimit(.minutes(5))) struct EpochChangeTests {
    /// Returns a store whose current log contains a random history of one partition.
    private func store(seed: UInt64, steps: Int) async throws -> FragileStore {
        var generator = HistoryGenerator(seed: seed)
        let store = FragileStore()
        try store.create(Epoch(0xaa), partitions: 1)
        try store.advance(to: CurrentLog(epoch: Epoch(0xaa), partitions: 1, number: 0))
        let log = try store.currentLog()
        var records: [LogAppend] = []
        for _ in 0..<steps {
            let record = generator.next().record
            // A hole of the generator becomes a void record, which has the same effect.
            while Seq(records.count) < record.seq { records.append(LogAppend(key: Array("~x".utf8), value: [])) }
            records.append(LogAppend(key: record.key, value: record.value))
        }
        try await log.append(records)
        return store
    }

    private func judged(_ store: FragileStore) throws -> JudgedLog {
        try JudgedLog(store.currentLog())
    }

    @Test(
        "A new epoch has the state of the old one, with any number of partitions, again and again",
        arguments: (0..<UInt64(6 * effort)).map { TestSeed.given(or: 3_000) + $0 }
    )
    func aNewEpochHasTheStateOf(
        seed: UInt64
    ) async throws {
        let store = try await store(seed: seed, steps: 400)
        let before = try judged(store)
        var last = try #require(try store.current())
        for partitions in [nil, 3, 2, 1] {
            let report = try EpochChange(store, partitions: partitions).run()
            let current = try #require(try store.current())
            #expect(current == report.new && report.old == last && report.losses.isEmpty)
            #expect(current.number == last.number + 1 && current.epoch != last.epoch)
            #expect(current.deployment == Deployment(0xaa))
            #expect(current.partitions == partitions ?? last.partitions)
            #expect(try judged(store) == before, "seed \(seed), \(partitions as Any) partitions")
            let rows = before.streams.values.map { lines in lines.count { $0 != Array("retired".utf8) } }
            #expect(report.objects + report.tombstones + report.sites == rows.reduce(0, +))
            last = current
        }
    }

    @Test("A partition whose last offsets are holes is rehearsed as it is changed")
    func aPartitionWhoseLastOffsetsAreHoles() async throws {
        let store = try await store(seed: 3_050, steps: 50)
        let log = try store.currentLog()
        for _ in 0..<2 { log.leaveHole(0) }
        let (before, plan) = (try judged(store), try EpochChange(store).plan())
        let report = try EpochChange(store).run()
        #expect(plan.losses.isEmpty && plan.objects == report.objects && plan.sites == report.sites)
        #expect(try judged(store) == before)
    }

    @Test(
        "Killed at any step and run again it comes to the same",
        arguments: (0..<UInt64(2 * effort)).map { TestSeed.given(or: 3_100) + $0 },
        FragileStore.Death.allCases
    )
    func killedAtAnyStepAndRunAgain(seed: UInt64, death: FragileStore.Death) async throws {
        var step = 0
        while true {
            let store = try await store(seed: seed, steps: 120)
            let before = try judged(store)
            store.die(atStep: step, death)
            let wasKilled = (try? EpochChange(store, partitions: 3).run()) == nil
            store.revive()
            guard wasKilled else { break }
            #expect(try judged(store) == before, "nothing has changed for those who look")
            if try store.current()?.number == 0 { _ = try EpochChange(store).run() }
            #expect(try judged(store) == before, "seed \(seed), step \(step)")
            #expect(try store.current()?.number == 1)
            step += 1
        }
        #expect(step >= 8, "create, end, seeds, three times open, advance")
    }

    @Test("Sites continue with their ops, and consumed events stay consumed") func sitesGoOnWithTheirOpsAnd()
        async throws
    {
        let store = try await store(seed: TestSeed.given(or: 3_200), steps: 0)
        let log = try store.currentLog()
        let (site, ended) = (ReelCore.Site(high: 1, low: 1), ReelCore.Site(high: 1, low: 2))
        func event(_ op: Int, of site: ReelCore.Site, base: Seq, last: Bool = false) -> LogAppend {
            let text = EventText.logged("insert", site, op, base: base, isLast: last, model: "m", id: "\(op)")
            return LogAppend(key: Array("todo".utf8), value: text.bytes)
        }
        try await log.append(
            (0..<5).map { event($0, of: site, base: -1) } + [event(0, of: ended, base: -1, last: true)]
        )
        _ = try EpochChange(store, partitions: 2).run()
        let new = try store.currentLog()
        let partition = try #require(StreamName("todo")).partition(of: 2)
        let head = try new.bounds(partition).last
        try await new.append(
            [
                event(4, of: site, base: head), event(6, of: site, base: head), event(5, of: site, base: head),
                event(1, of: ended, base: head),
            ],
            to: partition
        )
        var fold = PartitionFold(partition: partition, of: 2, epoch: new.epoch)
        var outcomes: [Op?] = []
        try new.scan(partition, from: 0) { batch in
            for entry in batch.entries {
                _ = batch.withRecord(entry) { fold.read(key: $0, value: $1, seq: entry.seq) }
                if entry.seq > head { outcomes.append(fold.streams.first?.value.site(site)?.op) }
            }
        }
        #expect(outcomes == [4, 4, 5, 5], "4 was consumed, 6 is a gap, 5 is next, and the other site has ended")
        #expect(fold.streams.first?.value.site(ended)?.op == 0)
    }

    @Test("A new log that does not hold what was written to it does not become the current one")
    func aNewLogThatDoesNotHold() async throws {
        let store = try await store(seed: TestSeed.given(or: 3_250), steps: 200)
        let before = try judged(store)
        store.loseSeed()
        let error = #expect(throws: LogError.self) { try EpochChange(store, partitions: 2).run() }
        #expect(error?.code == .damaged)
        #expect(try store.current()?.number == 0)
        // The next run writes the seeds again, and the new log is then complete.
        _ = try EpochChange(store).run()
        #expect(try judged(store) == before)
    }

    @Test("A broker that lags behind is asked once more, and what it has not is not left out")
    func aBrokerThatLagsBehindIsAsked() async throws {
        var reads = 0
        while true {
            let store = try await store(seed: TestSeed.given(or: 3_270), steps: 120)
            let before = try judged(store)
            store.lag(afterReads: reads)
            do {
                _ = try EpochChange(store, partitions: 2).run()
            } catch let error as LogError {
                #expect(error.code == .logUnavailable)
                #expect(try store.current()?.number == 0)
                _ = try EpochChange(store, partitions: 2).run()
            }
            #expect(try judged(store) == before, "behind \(reads) reads")
            if store.lagIsToCome { break }
            reads += 1
        }
        #expect(reads >= 4)
    }

    /// Snapshots that contain only the name of their log, and optionally one fold.
    private struct BareArchive: StateArchive {
        var epoch: Epoch
        var partitions: Int
        var number: Int?
        var deployment: Deployment?

        var fold: PartitionFold?

        func state(of partition: Int) throws -> ArchivedState? {
            fold.map { ArchivedState(fold: $0, last: nil) }
        }
    }

    @Test(
        "A log that is lost with its store leaves its deployment to the next one, as the snapshots name it",
        arguments: [nil, Deployment(0x11)]
    )
    func aLogThatIsLostWithIts(
        named: Deployment?
    ) throws {
        let fold = PartitionFold(partition: 0, of: 1, epoch: Epoch(0xaa))
        let archive = BareArchive(epoch: Epoch(0xaa), partitions: 1, number: 4, deployment: named, fold: fold)
        let store = FragileStore()
        let report = try EpochChange(store, archive: archive).run()
        #expect(report.deploymentIsKnown == (named != nil))
        #expect(report.new.deployment == named ?? Deployment(0xaa))
        #expect(try store.current() == report.new && report.new.number == 5)
    }

    @Test("What is lost is said by the run that comes to the end, wherever it was killed before")
    func whatIsLostIsSaidByThe() async throws {
        var step = 0
        while true {
            let store = try await store(seed: TestSeed.given(or: 3_295), steps: 30)
            var archive = BareArchive(epoch: Epoch(0xaa), partitions: 1, number: 0)
            var fold = PartitionFold(partition: 0, of: 1, epoch: Epoch(0xaa))
            try store.currentLog().scan(0, from: 0) { batch in
                for entry in batch.entries {
                    _ = batch.withRecord(entry) { fold.read(key: $0, value: $1, seq: entry.seq) }
                }
            }
            archive.fold = fold
            // The log is replaced by an empty log of the same epoch.
            store.lose(Epoch(0xaa))
            try store.create(Epoch(0xaa), partitions: 1)

            store.die(atStep: step, .before)
            let wasKilled = (try? EpochChange(store, archive: archive).run()) == nil
            store.revive()
            guard wasKilled else { break }
            let report = try EpochChange(store, archive: archive).run()
            #expect(report.losses.map(\.seq) == [fold.next - 1], "killed at step \(step)")
            step += 1
        }
        #expect(step >= 5, "create, end, seeds, open, advance")
    }

    /// Returns a store whose log was trimmed four seqs after its middle, or up to its end. The two archives hold the
    /// state of the first half and of the whole history.
    private func trimmed(
        toItsEnd: Bool = false
    ) async throws -> (store: FragileStore, half: BareArchive, whole: BareArchive) {
        let store = try await store(seed: TestSeed.given(or: 3_297), steps: 60)
        let log = try store.currentLog()
        let last = try log.bounds(0).last
        func archive(upTo seq: Seq) throws -> BareArchive {
            var fold = PartitionFold(partition: 0, of: 1, epoch: Epoch(0xaa))
            try log.scan(0, from: 0, to: seq) { batch in
                for entry in batch.entries {
                    _ = batch.withRecord(entry) { fold.read(key: $0, value: $1, seq: entry.seq) }
                }
            }
            return BareArchive(epoch: Epoch(0xaa), partitions: 1, number: 0, fold: fold)
        }
        let (half, whole) = (try archive(upTo: last / 2), try archive(upTo: last))
        log.trim(0, before: toItsEnd ? last + 1 : last / 2 + 5)
        return (store, half, whole)
    }

    @Test("Of a log that was trimmed up to its end a snapshot lacks what lies between its seq and that end")
    func ofALogThatWasTrimmedUp()
        async throws
    {
        let (store, half, whole) = try await trimmed(toItsEnd: true)
        let seq = try #require(half.fold).next - 1
        let end = try #require(whole.fold).next - 1
        let losses = try EpochChange(store, archive: half).plan().losses
        #expect(losses.map(\.seq) == [seq] && losses.map(\.end) == [end])
        let report = try EpochChange(store, archive: whole).run()
        #expect(report.losses.isEmpty && report.sites > 0)
    }

    @Test(
        "What is lost has been said where the last step's answer does not come",
        arguments: FragileStore.Death.allCases
    )
    func whatIsLostHasBeenSaidWhere(death: FragileStore.Death) async throws {
        let clean = try await trimmed()
        clean.store.die(atStep: .max, .before)
        let losses = try EpochChange(clean.store, archive: clean.half).run().losses.map(\.seq)
        let (store, half, _) = try await trimmed()
        store.die(atStep: clean.store.steps - 1, death)
        var told: [EpochReport] = []
        #expect(throws: LogError.self) { try EpochChange(store, archive: half).run { told.append($0) } }
        #expect(try store.current()?.number == (death == .behind ? 1 : 0))
        #expect(told.map { $0.losses.map(\.seq) } == [losses] && losses.count == 1)
    }

    @Test("A missing log that continues another one is not created again under its name")
    func aLogThatAnotherOneGoesOn() async throws {
        let store = try await store(seed: TestSeed.given(or: 3_298), steps: 30)
        let old = try store.currentLog()
        let next = try EpochChange(store).run().new.epoch
        store.lose(next)
        store.forget()
        var fold = PartitionFold(partition: 0, of: 1, epoch: old.epoch)
        fold.skip(to: 1)
        let archive = BareArchive(epoch: old.epoch, partitions: 1, number: 0, fold: fold)
        let error = #expect(throws: LogError.self) { try EpochChange(store, archive: archive).run() }
        #expect(error?.code == .damaged && error?.message.contains("continues in \(next), which is missing") == true)
        #expect(store.log(next) == nil)
        #expect(try store.current() == nil)
    }

    @Test("Who finishes another's run hears of its loss with the same snapshots, and of none with others")
    func whoFinishesAnotherSRunHearsOf()
        async throws
    {
        let clean = try await trimmed()
        clean.store.die(atStep: .max, .before)
        let loss = try EpochChange(clean.store, archive: clean.half).run().losses.map(\.seq)
        #expect(loss.count == 1)
        for (isHalf, isThere) in [(true, true), (false, true), (false, false)] {
            let (store, half, whole) = try await trimmed()
            store.die(atStep: clean.store.steps - 1, .before)
            #expect(throws: LogError.self) { try EpochChange(store, archive: half).run() }
            store.revive()
            let run = EpochChange(store, archive: isThere ? isHalf ? half : whole : nil)
            if isThere, !isHalf {
                let error = #expect(throws: LogError.self) { try run.run() }
                #expect(error?.code == .badRequest)
                continue
            }
            let report = try run.run()
            #expect(report.wasWritten && report.lossesAreKnown == isThere)
            #expect(report.losses.map(\.seq) == (isThere ? loss : []))
            #expect(try store.current()?.number == 1)
        }
    }

    @Test("A trimmed log does not end while nobody says where its state is", arguments: [2, 3] as [Seq])
    func aTrimmedLogDoesNotEndWhile(
        first: Seq
    ) async throws {
        let store = FragileStore()
        try store.create(Epoch(0xaa), partitions: 2)
        try store.advance(to: CurrentLog(epoch: Epoch(0xaa), partitions: 2, number: 0))
        let log = try store.currentLog()
        let void = LogAppend(key: Array("~x".utf8), value: [])
        for partition in 0..<2 { try await log.append([void, void, void], to: partition) }
        log.trim(1, before: first)
        store.die(atStep: .max, .before)
        let error = #expect(throws: LogError.self) { try EpochChange(store).run() }
        #expect(error?.code == .truncated && error?.seq == first)
        let message = error?.message ?? ""
        #expect(message.contains("partition 1 ") && message.contains("--from-snapshot"), "\(message)")
        #expect(store.steps == 0, "nothing was made, nothing was written")
        for partition in 0..<2 { #expect(try log.bounds(partition).last == 2) }
    }

    @Test("A log that nobody names any more is gone on with all the same") func aLogThatNobodyNamesAnyMore()
        async throws
    {
        let store = try await store(seed: TestSeed.given(or: 3_280), steps: 120)
        let before = try judged(store)
        store.forget()
        let report = try EpochChange(store, archive: BareArchive(epoch: Epoch(0xaa), partitions: 1, number: 5)).run()
        #expect(report.losses.isEmpty)
        #expect(try store.current()?.number == 6)
        #expect(try judged(store) == before)
    }

    @Test("Of a log that is gone the nodes say how far it went, and those of other logs do not")
    func ofALogThatIsGoneThe() async throws {
        let store = try await store(seed: TestSeed.given(or: 3_290), steps: 50)
        let log = try store.open(Epoch(0xaa))
        for (id, epoch, seq) in [("a", 0xaa, 70), ("b", 0xaa, 60), ("c", 0xbb, 90)] as [(String, UInt64, Seq)] {
            try log.announce(
                NodeAnnouncement(
                    id: id,
                    role: "gateway",
                    url: "",
                    advertised: nil,
                    build: "",
                    epoch: Epoch(epoch),
                    positions: [.init(partition: 0, seq: seq)],
                    atMs: Int64(Date.now.timeIntervalSince1970 * 1_000)
                )
            )
        }
        store.lose(Epoch(0xaa))
        let report = try EpochChange(store, archive: BareArchive(epoch: Epoch(0xaa), partitions: 1, number: 0)).run()
        #expect(report.losses.map(\.seq) == [-1] && report.losses.map(\.end) == [70])
    }

    @Test("A stream in which no event has an effect holds up nobody") func aStreamInWhichNoEventHas() async throws {
        let store = try await store(seed: TestSeed.given(or: 3_260), steps: 0)
        let site = ReelCore.Site(high: 1, low: 1)
        let gap = EventText.logged("insert", site, 1, model: "m", id: "0")
        try await store.currentLog().append([LogAppend(key: Array("todo".utf8), value: gap.bytes)])
        _ = try EpochChange(store, partitions: 2).run()
        #expect(try store.current()?.number == 1)
    }

    @Test("Of two operators at once both come to the same epoch") func ofTwoOperatorsAtOnceBothCome() async throws {
        let store = try await store(seed: TestSeed.given(or: 3_300), steps: 200)
        let before = try judged(store)
        // Each operator waits until the other one has read the current log. Otherwise one operator could finish before
        // the other one starts, and the second change would begin another epoch.
        let haveLooked = (0..<2).map { _ in DispatchSemaphore(value: 0) }
        let reports = try await withThrowingTaskGroup(of: EpochReport.self) { group in
            for place in 0..<2 {
                group.addTask {
                    try await withCheckedThrowingContinuation { continuation in
                        Thread.detachNewThread {
                            var hasMet = false
                            let change = EpochChange(store, partitions: 2) { _ in
                                guard !hasMet else { return }
                                hasMet = true
                                haveLooked[place].signal()
                                guard haveLooked[1 - place].wait(timeout: .now() + 60) == .success else {
                                    throw LogError(.logUnavailable, "the other operator has not read the log")
                                }
                            }
                            continuation.resume(with: Result { try change.run() })
                        }
                    }
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        let current = try #require(try store.current())
        #expect(current.number == 1)
        #expect(reports.map(\.new) == [current, current])
        #expect(try judged(store) == before)
    }

    @Test("A rehearsal writes nothing and counts the same") func aRehearsalWritesNothingAndCountsThe() async throws {
        let store = try await store(seed: TestSeed.given(or: 3_400), steps: 200)
        let steps = store.steps
        let rehearsed = try EpochChange(store).plan()
        #expect(store.steps == steps)
        let report = try EpochChange(store).run()
        #expect(rehearsed.objects == report.objects && rehearsed.sites == report.sites)
        #expect(rehearsed.bytes == report.bytes && rehearsed.events == report.events)
    }

    @Test("An old log that holds a barrier of a later version is left as it is") func anOldLogThatHoldsABarrier()
        async throws
    {
        let store = try await store(seed: TestSeed.given(or: 3_500), steps: 50)
        let log = try store.currentLog()
        try await log.append([LogAppend(key: Array("~reel".utf8), value: Array(#"{"fold":2,"type":"barrier"}"#.utf8))])
        let last = try log.bounds(0).last
        #expect(throws: LogError.self) { try EpochChange(store).run() }
        #expect(try log.bounds(0).last == last)
        #expect(try store.current()?.number == 0)
    }
}

extension EventLog {
    /// Appends and waits for the answer.
    fileprivate func append(_ records: [LogAppend], to partition: Int = 0) async throws {
        _ = try await withCheckedThrowingContinuation { continuation in
            append(records, to: partition) { continuation.resume(with: $0) }
        }
    }
}
