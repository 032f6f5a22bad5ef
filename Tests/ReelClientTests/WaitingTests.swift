import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient
@testable import ReelCore

/// Splices that are published while an earlier event of their text is expected to be rejected, but is not rejected yet.
@Suite(.timeLimit(.minutes(5))) struct WaitingTests {
    private static func edit(_ offset: Int64, _ text: String) -> SyncEvent {
        .update("m", id: "0", operations: ["text": .splice([TextSplice(at: offset, removing: 0, inserting: text)])])
    }

    @Test("under any faults, a waiting splice is sent or refused, and its placement does not change the shown text")
    func everySpliceIsPlaced() {
        var (placed, refused, all) = (0, 0, 0)
        Seeds.run(100) { seed in
            var simulation = OverlaySimulation(seed: seed)
            simulation.stream.sync.isComplete = true
            var waiting: Set<Int64> = []
            for _ in 0..<200 {
                simulation.turn { simulation in
                    if let number = simulation.publishChecked() { waiting.insert(number) }
                }
                simulation.stream.sync.isComplete = true
                let outbox = simulation.stream.outbox
                let held = waiting.filter { number in
                    outbox.released[number] == false && outbox.entries.contains { $0.number == number }
                }
                let shown = OverlaySimulation.ids.map { simulation.shown(Fold.key(model: "m", id: $0)) }
                func fillers() -> Int { simulation.stream.outbox.entries.count { $0.event.isFiller } }
                let before = fillers()
                simulation.stream.placeReleased()
                simulation.look()
                if held.isEmpty { continue }
                let entries = simulation.stream.outbox.entries.filter { held.contains($0.number) }
                #expect(entries.count == held.count && entries.allSatisfy { $0.waits == nil })
                guard fillers() == before else {
                    refused += 1
                    continue
                }
                placed += 1
                let after = OverlaySimulation.ids.map { simulation.shown(Fold.key(model: "m", id: $0)) }
                #expect(shown.map { $0?.value("text") } == after.map { $0?.value("text") }, "seed \(seed)")
            }
            all += waiting.count
            let isDone = simulation.drain()
            #expect(isDone, "seed \(seed): \(simulation.stream.outbox.entries.count) events wait")
            let outbox = simulation.stream.outbox
            #expect(outbox.waiting.isEmpty && outbox.released.isEmpty, "seed \(seed)")
        }
        #expect(placed > 0 && refused > 0, "\(placed) of \(all) placed, \(refused) refused")
    }

    /// Returns a device that has read two objects, at the seqs 0 and 1. Each has a number and the text `ab`.
    private static func device() -> OverlaySimulation {
        var simulation = OverlaySimulation(seed: 1)
        simulation.stream.sync.isComplete = true
        for id in ["0", "1"] { write(.insert("m", id: id, ["n": 0, "text": "ab"]), &simulation) }
        simulation.fold(2)
        return simulation
    }

    /// Appends an event of another device that has read the whole log.
    private static func write(_ change: SyncChange, _ simulation: inout OverlaySimulation) {
        let author = EventID(site: simulation.others[0], op: simulation.otherOps[0])
        simulation.otherOps[0] += 1
        simulation.append(SyncEvent(change).encoded(base: simulation.truth.seq, author: author))
    }

    private static func title(_ id: String, _ text: String, _ seq: Seq) -> SyncEvent {
        SyncEvent(SyncChange.update("m", id: id, ["text": .string(text)]).guarded(["n": seq]))
    }

    private static func splice(_ id: String, _ offset: Int64, _ text: String) -> SyncEvent {
        .update("m", id: id, operations: ["text": .splice([TextSplice(at: offset, removing: 0, inserting: text)])])
    }

    private static func add(_ event: SyncEvent, _ simulation: OverlaySimulation) throws -> Int64 {
        try simulation.stream.add(event, base: simulation.stream.seq, read: nil)
    }

    @Test("a splice waits for an earlier waiting splice that a filler will replace")
    func waitsForWaitingSplice() throws {
        var simulation = Self.device()
        let stream = simulation.stream
        let lost = try Self.add(Self.title("0", "title", 0), simulation)
        simulation.send()
        Self.write(.update("m", id: "0", ["n": 1]), &simulation)
        simulation.fold(1)
        let waiting = try Self.add(Self.splice("0", 2, "c"), simulation)
        #expect(stream.outbox.entries.last?.waits == [lost])
        // The fold rejects the title. Meanwhile another device has replaced the text, and the splice has no place in
        // it.
        simulation.arrive(calm: true)
        Self.write(.update("m", id: "0", ["text": "new"]), &simulation)
        simulation.fold(2)
        #expect(stream.outbox.released == [waiting: false])
        let behind = try Self.add(Self.splice("0", 3, "er"), simulation)
        #expect(stream.outbox.entries.last?.waits == [waiting])
        #expect(stream.visible("m", "0")?["text"] == "newer")
        stream.placeReleased()
        #expect(stream.outbox.entries.map(\.number) == [waiting, behind])
        #expect(stream.outbox.entries.first?.event.isFiller == true)
        #expect(stream.visible("m", "0")?["text"] == "newer")
        let isDone = simulation.drain()
        #expect(isDone && stream.confirmed("m", "0")?["text"] == "newer")
    }

    @Test("a splice that depends on a rejected text stays stale if an earlier splice is placed")
    func countsLostText() throws {
        var simulation = Self.device()
        let stream = simulation.stream
        _ = try Self.add(Self.title("0", "lost", 0), simulation)
        _ = try Self.add(Self.title("1", "title", 1), simulation)
        simulation.send()
        Self.write(.update("m", id: "0", ["n": 1]), &simulation)
        Self.write(.update("m", id: "1", ["n": 1]), &simulation)
        simulation.fold(1)
        let waiting = try Self.add(Self.splice("0", 2, "c"), simulation)
        let counting = try Self.add(Self.splice("1", 1, "w"), simulation)
        #expect(stream.outbox.entries.map(\.waits) == [nil, nil, [1], nil])
        #expect(stream.visible("m", "0")?["text"] == "abc" && stream.visible("m", "1")?["text"] == "twitle")
        simulation.arrive(calm: true)
        simulation.fold(3)
        #expect(stream.outbox.entries.map(\.number) == [waiting, counting])
        #expect(stream.visible("m", "1")?["text"] == "ab")
        stream.placeReleased()
        #expect(stream.visible("m", "0")?["text"] == "abc" && stream.visible("m", "1")?["text"] == "ab")
        let isDone = simulation.drain()
        #expect(isDone && stream.confirmed("m", "0")?["text"] == "abc" && stream.confirmed("m", "1")?["text"] == "ab")
    }

    @Test("a splice that was refused while it waited for two events is released by neither")
    func refusedWhileWaitingForTwo() {
        var outbox = Outbox(seed: 1)
        let titles = (0..<2).map { outbox.add(Self.title("0", "lost", $0), base: 0) { _ in true } }
        let waiting = outbox.add(Self.splice("0", 0, "a"), base: 0, waits: titles) { _ in true }
        let sites = (0..<2).map { EventID(site: outbox.site, op: $0) }
        _ = outbox.nextBatch(.init(events: 2, bytes: 4_096), base: 0, horizon: -1, nowMs: 0)
        func fold(_ op: Int, _ outcome: Outcome) {
            let content = outbox.entries.first?.event.encoded(base: 0, author: sites[op]) ?? []
            outbox.folded(sites[op], seq: Seq(op) + 1, outcome, content: content, base: 0, nowMs: 0)
        }
        // The fold applied the first event, so the splice must be refused.
        fold(0, .applied)
        #expect(outbox.released == [waiting: true])
        outbox.released = [:]
        outbox.refuseUnplaced(at: outbox.index(behind: waiting - 1), base: 1)
        fold(1, .rejected(.guard))
        #expect(outbox.released.isEmpty && outbox.waiting.isEmpty)
    }

    /// Makes a client with a title that is sent and will be rejected. The client expects the rejection.
    private func rejectedTitle(
        _ network: FakeNetwork,
        _ store: SyncClient.Store
    ) async throws -> (client: SyncClient, stream: SyncStream, title: PublishHandle) {
        let client = try network.client(store: store)
        let stream = try await client.open("s", from: .beginning)
        let first = try await stream.publish(.insert("m", id: "0", ["text": "title", "n": 0])).outcome()
        guard case .applied(let seq) = first else { throw Wrong() }
        // The log has the event, and the device does not get it yet.
        try await network.on { $0.isSilent = true }
        try await network.on { network in network.author(.update("m", id: "0", ["n": 1])) }
        let title = try await stream.publish(
            SyncEvent(.update("m", id: "0", ["text": "lost"]).guarded(["n": seq]))
        )
        try await eventually { try await network.on { $0.log.count } == 3 }
        try await network.on { $0.push(upTo: 1) }
        try await eventually { try stream.object("m", id: "0")?["text"] == "title" }
        return (client, stream, title)
    }

    @Test("the fold applies text that is typed while a rejected title is on its way", arguments: [false, true])
    func typing(isKilled: Bool) async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        var (client, stream, title) = try await rejectedTitle(network, .file(path))
        var typed: [PublishHandle] = []
        for (offset, letter) in ["a", "b", "c"].enumerated() {
            typed.append(try await stream.publish(Self.edit(5 + Int64(offset), letter)))
        }
        let behind = try await stream.publish(.insert("m", id: "behind"))
        #expect(try stream.object("m", id: "0")?["text"] == "titleabc")
        #expect(try await network.on { $0.log.count } == 3, "they wait, and what comes after them")
        if isKilled {
            await client.close()
            client = try network.client(store: .file(path))
            stream = try await client.open("s", from: .beginning)
            #expect(try stream.object("m", id: "0")?["text"] == "titleabc")
        }
        // Another device inserts a text at the beginning before the device reads the rejection.
        try await network.on { network in
            network.author(
                .update("m", id: "0", operations: ["text": .splice([TextSplice(at: 0, removing: 0, inserting: "My ")])])
            )
            network.isSilent = false
            network.pushAll()
        }
        if !isKilled {
            guard case .rejected(.guard, 2) = try await title.outcome() else { throw Wrong() }
            for publication in typed + [behind] {
                guard case .applied = try await publication.outcome() else { throw Wrong() }
            }
        }
        try await eventually { await stream.pendingCount == 0 }
        #expect(try stream.confirmed.object("m", id: "0")?["text"] == "My titleabc")
        #expect(try stream.confirmed.object("m", id: "behind") != nil)
        await client.close()
    }

    @Test("after a refusal at hand-over, the waiting text is refused, and later events are sent in the same turn")
    func refusedAtHandOver() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s", from: .beginning)
        let first = try await stream.publish(.insert("m", id: "0", ["text": "title", "n": 0])).outcome()
        guard case .applied(let seq) = first else { throw Wrong() }
        try await network.on { $0.kill("a") }
        let title = try await stream.publish(SyncEvent(.update("m", id: "0", ["text": "lost"]).guarded(["n": seq])))
        try await network.on { network in
            (network.isSilent, network.dropsFetches) = (true, true)
            network.author(.update("m", id: "0", ["n": 1]))
            network.author(.delete("m", id: "0"))
            network.down = []
        }
        try await eventually { await client.phases("s") == [.live] }
        try await network.on { $0.push(upTo: 1) }
        try await eventually { try stream.object("m", id: "0")?["text"] == "title" }
        let typed = try await stream.publish(Self.edit(5, "a"))
        let behind = try await stream.publish(.insert("m", id: "behind"))
        #expect(try await network.on { $0.log.count } == 3)
        // The deletion brings the device to its head. The title is refused, and so is the text that waits for it.
        try await network.on { $0.push(upTo: 2) }
        guard case .failed(let error) = try await title.outcome(), error.code == .deleted else { throw Wrong() }
        try await eventually { try await network.on { $0.log.count } == 4 }
        guard case .failed(let error) = try await typed.outcome(), error.code == .deleted else { throw Wrong() }
        try await network.on { network in
            network.isSilent = false
            network.pushAll()
        }
        guard case .applied(3) = try await behind.outcome() else { throw Wrong() }
        await client.close()
    }

    @Test("a splice that was made before the rejection was expected throws stale")
    func unknowing() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s", from: .beginning)
        guard
            case .applied(let seq) = try await stream.publish(.insert("m", id: "0", ["text": "title", "n": 0]))
                .outcome()
        else { throw Wrong() }
        try await network.on { $0.isSilent = true }
        try await network.on { network in network.author(.update("m", id: "0", ["n": 1])) }
        try await stream.publish(SyncEvent(.update("m", id: "0", ["text": "lost"]).guarded(["n": seq])))
        let read = try #require(try stream.object("m", id: "0"))
        #expect(read["text"] == "lost")
        try await eventually { try await network.on { $0.log.count } == 3 }
        try await network.on { $0.push(upTo: 1) }
        try await eventually { try stream.object("m", id: "0")?["text"] == "title" }
        let error = await #expect(throws: ReelError.self) {
            try await stream.publish(Self.edit(4, "x"), base: read.readAt)
        }
        #expect(error?.code == .stale)
        await client.close()
    }
}
