import Foundation
import ReelCore
import ReelNet
import ReelSQLite
import ScriptedNodes
import TestSupport
import Testing

@testable import ReelClient

/// A device's process that is killed at any call that changes a file of its store, or in the middle of a write.
///
/// By default a test takes some of the calls, beginning at one that the seed chooses. `REEL_EFFORT` multiplies their
/// number, so a large one takes all calls.
@Suite(.timeLimit(.minutes(60))) struct KilledDeviceWorkTests {
    private static let samples = 6
    private static let faults = ["kill", "tear"]
    /// Works that a second process continues after the first one was killed.
    private static let repeatable = ["load", "evict"]
    private let s = DeviceScene.s
    private let t = DeviceScene.t

    /// A store after a run, which may have been killed.
    private struct Killed {
        var scene: DeviceScene
        var store: String
        var run: DeviceRun
        var call: Int
        /// The fault, for messages.
        var moment: Comment

        /// True if the test continues with a node. It takes long, and shows less than the state without a node.
        var isContinued: Bool { call.isMultiple(of: 4) }

        /// Creates a client of the store without a node.
        func offline(user: String = "ann") throws -> SyncClient {
            let client = try DeviceScene.client(store, try FoldedLog().node(), nodes: [], user: user)
            #expect(client.status.problems.allSatisfy { !$0.code.rawValue.hasPrefix("store_") }, moment)
            return client
        }

        /// Returns the log with the records that the node of the process has appended, and a node that has them.
        func node(of log: FoldedLog) throws -> (log: FoldedLog, node: ScriptedNode) {
            let whole = log.copy()
            let node = try whole.node()
            for record in run.records {
                whole.append(record)
                node.append(to: record.stream) { _ in record.value }
            }
            return (whole, node)
        }
    }

    @Test(
        "a killed first load keeps the objects that it has shown, continues after them, and ends right",
        arguments: Self.faults
    )
    func load(fault: String) async throws {
        var continued = 0
        try await everyCall(of: "load", fault) { killed in
            let (run, moment) = (killed.run, killed.moment)
            let offline = try killed.offline()
            let partial = try await offline.open("s")
            let (held, isComplete) = try partial.read { (try $0.objects("m").count, $0.isComplete) }
            #expect(held >= run.largest("shown") ?? 0, moment)
            #expect(isComplete || !run.has("at"), moment)
            if isComplete { #expect(held == DeviceScene.objects, moment) }
            await offline.close()

            let (log, node) = try killed.node(of: killed.scene.log)
            let client = try DeviceScene.client(killed.store, node)
            try await expect(client, node, has: log, [s], moment)
            #expect(try await client.open("s").objects("m").count == DeviceScene.objects, moment)
            let requests = try await node.requests
            let bytes = await client.statistics.snapshotBytes
            if isComplete {
                #expect(requests.count == 1 && requests[0].contains("/delta?after=\(log.head)&epoch"), moment)
            } else if held == 0 {
                #expect(requests.count == 1 && requests[0].hasSuffix("/snapshot"), moment)
            } else {
                continued += 1
                #expect(requests.count == 1 && requests[0].contains("&model=m&id="), moment)
                let rest = try log.snapshot(of: s).count * (DeviceScene.objects - held) / DeviceScene.objects
                // The last write of a load stores its rows without the key of the last object. A kill between this
                // write and the commit of the state costs one write: its rows are requested again.
                let again = held == DeviceScene.objects ? 512 << 10 : 0
                #expect(bytes <= Int64(rest + again + 8_192), moment)
            }
            try await close(client, killed, generations: 1)
        }
        #expect(continued > 0)
    }

    @Test("a device that is killed in a delta or an event has the state before it or after it", arguments: Self.faults)
    func delta(fault: String) async throws {
        var seqs: Set<Seq> = []
        try await everyCall(of: "delta", fault) { killed in
            let (scene, moment) = (killed.scene, killed.moment)
            let offline = try killed.offline()
            let former = try await offline.open("s")
            let seq = await former.seq
            seqs.insert(seq)
            #expect(await former.digest() == scene.digests[seq], moment)
            #expect(seq >= Seq(killed.run.largest("at") ?? 0), moment)
            #expect(try former.read { $0.isComplete }, moment)
            try await close(offline, killed, generations: 2)
            guard killed.isContinued else { return }

            let log = scene.later.copy()
            for event in scene.events { log.append(event) }
            let node = try log.node(head: scene.log.head)
            for record in scene.changes + scene.events { node.append(to: s) { _ in record.value } }
            let client = try DeviceScene.client(killed.store, node)
            try await expect(client, node, has: log, [s], moment)
            let stream = try await client.open("s")
            #expect(try stream.objects("m").count == DeviceScene.objects - 40, moment)
            #expect(try stream.object("count", id: "1")?["n"]?.number == Double(scene.events.count), moment)
            try await close(client, killed, generations: 2)
        }
        #expect(seqs.count > 1)
    }

    @Test(
        "a killed device has each event for which publish has returned, and each happens once",
        arguments: Self.faults
    )
    func publish(fault: String) async throws {
        try await everyCall(of: "publish", fault) { killed in
            let (promised, moment) = (killed.run.all("published"), killed.moment)
            let offline = try killed.offline()
            let before = Set(try await offline.open("s").objects("own").map(\.name.id))
            #expect(before.isSuperset(of: promised + ["waiting"]), moment)
            await offline.close()

            let (log, node) = try killed.node(of: killed.scene.log)
            let client = try DeviceScene.client(killed.store, node)
            try await client.flush(deadline: .seconds(60))
            try await expect(client, node, has: log, [s, t], moment)
            let stream = try await client.open("s")
            let own = Set(try stream.objects("own").map(\.name.id)).subtracting(["waiting"])
            #expect(own == before.subtracting(["waiting"]), moment)
            #expect(own.isSuperset(of: promised) && own.count <= promised.count + 1, moment)
            // An event that happens twice counts twice.
            #expect(try stream.object("count", id: "1")?["n"]?.number == Double(own.count), moment)
            #expect(try await client.open("t").objects("own").map(\.name.id) == ["first", "waiting"], moment)
            try await close(client, killed, generations: 2)
        }
    }

    @Test("a killed eviction leaves the whole stream or only its queue", arguments: Self.faults)
    func evict(fault: String) async throws {
        try await everyCall(of: "evict", fault) { killed in
            let moment = killed.moment
            let offline = try killed.offline()
            #expect(try await offline.streams().map(\.pendingCount) == [1, 1], moment)
            let isWhole = try await isWhole(offline, killed, isOver: killed.run.has("evicted"))
            #expect(try await offline.open("s").objects("own").map(\.name.id) == ["waiting"], moment)
            try await close(offline, killed, generations: isWhole ? 2 : 1)
            guard killed.isContinued else { return }

            let (log, node) = try killed.node(of: killed.scene.log)
            let client = try DeviceScene.client(killed.store, node)
            try await client.flush(deadline: .seconds(60))
            try await expect(client, node, has: log, [s, t], moment)
            for name in ["s", "t"] {
                #expect(try await client.open(name).object("own", id: "waiting") != nil, moment)
            }
            try await close(client, killed, generations: 2)
        }
    }

    @Test("a killed forgetting leaves the whole stream or nothing of it", arguments: Self.faults)
    func forget(fault: String) async throws {
        try await everyCall(of: "forget", fault) { killed in
            let moment = killed.moment
            let offline = try killed.offline()
            let held = try await offline.streams()
            #expect(held.last == LocalStream(id: "t", pendingCount: 1), moment)
            let isWhole = held.count == 2
            if isWhole {
                #expect(held[0] == LocalStream(id: "s", pendingCount: 1), moment)
                #expect(try await self.isWhole(offline, killed, isOver: killed.run.has("forgotten")), moment)
            }
            _ = try await offline.open("t")
            try await close(offline, killed, generations: isWhole ? 2 : 1)
            let queued = try count("SELECT count(*) FROM pair WHERE substr(key, 1, 1) = CAST('q' AS BLOB)", killed)
            #expect(queued == Int64(held.count), moment)
            guard killed.isContinued else { return }

            let (log, node) = try killed.node(of: killed.scene.log)
            let client = try DeviceScene.client(killed.store, node)
            try await client.flush(deadline: .seconds(60))
            try await expect(client, node, has: log, [s, t], moment)
            #expect(try await client.open("s").objects("own").count == (isWhole ? 1 : 0), moment)
            try await close(client, killed, generations: 2)
        }
    }

    @Test(
        "a killed sign-out leaves the user with everything, or nothing of the user in any file",
        arguments: ["signOut", "signOutBesideReader"],
        Self.faults
    )
    func signOut(work: String, fault: String) async throws {
        try await everyCall(of: work, fault) { killed in
            let (run, moment) = (killed.run, killed.moment)
            if run.has("left") { #expect(try files(killed.store).isEmpty, moment) }
            // The next user of the device may be another one.
            if !killed.call.isMultiple(of: 2), let other = try signedIn(killed, user: "bob") {
                #expect(try await other.streams().isEmpty && run.has("leaving"), moment)
                await other.close()
                return #expect(try files(killed.store).allSatisfy { !$0.holdsMarker }, moment)
            }
            let client = try killed.offline()
            let held = try await client.streams()
            if held.isEmpty {
                #expect(run.has("leaving"), moment)
                try await client.open("s").publish(.insert("m", id: "new"))
                await client.close()
                return #expect(try files(killed.store).allSatisfy { !$0.holdsMarker }, moment)
            }
            #expect(held.map(\.id) == ["s", "t"] && !run.has("left"), moment)
            for name in ["s", "t"] {
                let stream = try await client.open(name)
                #expect(try stream.object("own", id: "waiting") != nil, moment)
            }
            #expect(try await client.open("s").objects("m").count == DeviceScene.objects, moment)
            try await close(client, killed, generations: 2)
        }
    }

    // MARK: Runs

    /// Runs a work without a fault, and then with a fault at each call, or at some of the calls. After some of the
    /// kills a second process does the work, and is killed too. Calls `check` after each run.
    private func everyCall(of work: String, _ kind: String, _ check: (Killed) async throws -> Void) async throws {
        let (scene, start) = (try await SharedScene.shared.scene(), ContinuousClock.now)
        var random = SeededNumbers(TestSeed.value)
        func run(at call: Int?) async throws -> Killed {
            let fault = call.map { DeviceRun.Fault(kind: kind, call: $0) }
            let (store, script) = (try scene.store(for: work), scene.script(for: work))
            var run = try await DeviceRun.run(work, store: store, script: script, fault: fault)
            var moment = Comment(rawValue: "\(work), \(fault.map { "\($0)" } ?? "undisturbed")")
            if run.isKilled, Self.repeatable.contains(work), random.oneIn(3) {
                let second = DeviceRun.Fault(kind: kind, call: random.below(300))
                run.add(try await DeviceRun.run(work, store: store, script: script, fault: second))
                moment = Comment(rawValue: "\(moment), then \(second)")
            }
            #expect(!run.has("failed"), "\(moment): \(run.all("failed"))")
            let killed = Killed(scene: scene, store: store, run: run, call: call ?? 0, moment: moment)
            try await check(killed)
            removeStore(store)
            return killed
        }
        let undisturbed = try await run(at: nil)
        let calls = try #require(undisturbed.run.largest("calls"))
        let step = max(1, calls / (Self.samples * effort))
        var (runs, kills) = (0, 0)
        // The first calls create the file. A kill there leaves a rollback file, which no later call does.
        let created = Array(0..<min(6, calls))
        for call in created + stride(from: 6 + random.below(step), to: calls, by: step) {
            runs += 1
            kills += try await run(at: call).run.isKilled ? 1 : 0
        }
        // The number of calls differs a little from run to run.
        #expect(kills * 3 >= runs * 2)
        let taken = (ContinuousClock.now - start) / .seconds(1)
        print("device-writer \(work), \(kind): \(calls) calls, \(kills) kills in \(runs) runs, \(Int(taken)) s")
    }

    // MARK: Checks

    /// Checks that the client reaches the state of the log in these streams.
    private func expect(
        _ client: SyncClient,
        _ node: ScriptedNode,
        has log: FoldedLog,
        _ names: [StreamName],
        _ moment: Comment
    ) async throws {
        for name in names {
            let stream = try await client.open(name.description)
            try await stream.waitUntil(seq: log.head)
            var fold = log.fold(name)
            #expect(await stream.digest() == fold.digest(), moment)
            let consumed = try await node.loop.run { client.assumeIsolated { $0.opened[name]?.fold?.consumed } }
            #expect(consumed == fold.consumed, moment)
            #expect(await stream.pendingCount == 0, moment)
        }
        #expect(client.status.problems.allSatisfy { !$0.code.rawValue.hasPrefix("store_") }, moment)
    }

    /// Returns true if the stream `s` has all that the device had read, and false if it has nothing of that. Checks
    /// that it is one of the two, and that `t` is whole.
    private func isWhole(_ client: SyncClient, _ killed: Killed, isOver: Bool) async throws -> Bool {
        let (stream, other) = (try await client.open("s"), try await client.open("t"))
        let count = try stream.confirmed.objects("m").count
        #expect(count == 0 || !isOver, killed.moment)
        let digest = count == 0 ? nil : killed.scene.digests[killed.scene.log.head]
        #expect(await stream.digest() == digest, killed.moment)
        #expect(try other.objects("own").map(\.name.id) == ["first", "waiting"], killed.moment)
        return count > 0
    }

    /// Waits until the client has removed what is of no use, closes it, and checks the file.
    private func close(_ client: SyncClient, _ killed: Killed, generations: Int64) async throws {
        try await eventually { await client.isTidy }
        await client.close()
        let found = try count(
            "SELECT count(DISTINCT substr(key, 2, 8)) FROM pair WHERE substr(key, 1, 1) IN (x'6F', x'61', x'69')",
            killed
        )
        #expect(found == generations, killed.moment)
        let connection = try Connection(path: killed.store, mode: .readOnly, busyMs: 5_000)
        #expect(try connection.text("PRAGMA integrity_check") == "ok", killed.moment)
    }

    private func count(_ query: String, _ killed: Killed) throws -> Int64? {
        try Connection(path: killed.store, mode: .readOnly, busyMs: 5_000).integer(query)
    }

    /// Returns a client of another user; nil if the store still belongs to its user.
    private func signedIn(_ killed: Killed, user: String) throws -> SyncClient? {
        do {
            return try killed.offline(user: user)
        } catch let error as ReelError {
            #expect(error.code == .storeUser, killed.moment)
            return nil
        }
    }

    /// Returns the content of all files of a store.
    private func files(_ path: String) throws -> [Data] {
        try ["", "-wal", "-shm", "-journal"].filter { FileManager.default.fileExists(atPath: path + $0) }.map {
            try Data(contentsOf: URL(fileURLWithPath: path + $0))
        }
    }
}

extension Data {
    fileprivate var holdsMarker: Bool { range(of: Data(DeviceScene.marker.utf8)) != nil }
}

/// The scene of all tests that run at the same time.
private actor SharedScene {
    static let shared = SharedScene()
    private weak var present: DeviceScene?
    private var making: Task<DeviceScene, any Error>?

    func scene() async throws -> DeviceScene {
        if let present { return present }
        let making = self.making ?? Task { try await DeviceScene.make() }
        self.making = making
        defer { self.making = nil }
        let made = try await making.value
        present = made
        return made
    }
}
