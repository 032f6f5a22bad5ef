import Foundation
import ReelClient
import ReelCore
import ReelLab
import Synchronization
import TestSupport
import Testing

/// Tests a new epoch under nodes and devices: no queued event is lost, and none is consumed twice.
@Suite(.timeLimit(.minutes(20))) struct EpochTests {
    private func newEpoch(_ words: String..., in folder: String) async throws -> BuiltProgram.Run {
        let run = try await BuiltProgram.newEpoch(["--log", "sqlite:\(folder)/log.sqlite"] + words)
        #expect(run.code == 0, "\(run)")
        return run
    }

    private func epoch(_ node: NodeProcess) async throws -> String {
        let cluster = try await node.members("/v1/cluster")
        guard let epoch = cluster["epoch"] as? String else { throw NeverCame(description: "an epoch: \(cluster)") }
        return epoch
    }

    @Test("devices with queues go over to the next epoch and lose nothing") func devicesWithQueuesGo() async throws {
        let folder = try TemporaryFolder(prefix: "reel-epoch-")
        let gateways = [try NodeProcess.gateway("one", in: folder), try NodeProcess.gateway("two", in: folder)]
        let snapshot = try NodeProcess.snapshot(in: folder)
        let (nodes, path) = (gateways.map(\.url), folder.path)
        let (away, busy) = (
            try CountingDevice("away", nodes, in: folder), try CountingDevice("busy", nodes, in: folder)
        )

        // One device is offline since before the end, with a queue of which a part may have been sent.
        var client = try away.open()
        var stream = try await client.open("todo")
        try await away.make(stream)
        try await away.add(10, stream)
        try await eventually("the first events of the device are consumed") { stream.status.pendingCount == 0 }
        try await away.add(5, stream)
        await client.close()
        client = try away.open(isOnline: false)
        stream = try await client.open("todo")
        try await away.add(20, stream)
        #expect(away.count(on: stream) != nil)
        await client.close()

        // The other device publishes continuously, through three epochs.
        let busyClient = try busy.open()
        let busyStream = try await busyClient.open("todo")
        try await busy.make(busyStream)
        let before = try await epoch(gateways[0])
        var added = 0
        var epochs: Set<String> = [before]
        for partitions in ["7", "3"] {
            let hasEnded = Atomic(false)
            async let change = {
                defer { hasEnded.store(true, ordering: .relaxed) }
                return try await newEpoch("--partitions", partitions, in: path)
            }()
            repeat {
                try await busy.add(2, busyStream)
                added += 2
                try await eventually("they are consumed, or the epoch has changed") {
                    busyStream.status.pendingCount == 0 || hasEnded.load(ordering: .relaxed)
                }
            } while !hasEnded.load(ordering: .relaxed)
            let run = try await change
            #expect(run.output.contains("\(partitions) partitions, log number"), "\(run)")
            #expect(!run.output.contains("; lost: "), "\(run)")
            for node in gateways + [snapshot] {
                try await eventually("\(node.name) has gone over") {
                    guard let epoch = try? await epoch(node) else { return false }
                    return !epochs.contains(epoch)
                }
            }
            epochs.insert(try await epoch(gateways[0]))
        }
        client = try away.open()
        stream = try await client.open("todo")
        try await eventually("all is consumed") {
            let (mine, others) = (stream.status.pendingCount, busyStream.status.pendingCount)
            return mine + others == 0
        }
        try await eventually("both show the same") {
            let (mine, others) = (await stream.digest(), await busyStream.digest())
            return mine == others
        }
        for stream in [stream, busyStream] {
            #expect(away.count(on: stream) == 35)
            #expect(busy.count(on: stream) == Double(added))
            #expect(stream.status.epoch?.description == (try await epoch(gateways[1])))
        }
        await client.close()
        await busyClient.close()
    }

    @Test("an operator can run epoch new again after a kill at any moment") func repeatsKilledChange() async throws {
        var numbers = SeededNumbers(TestSeed.value)
        let folder = try TemporaryFolder(prefix: "reel-epoch-")
        let node = try NodeProcess.gateway(in: folder)
        let state = try NodeProcess.snapshot(in: folder)
        let counter = try CountingDevice("device", [node.url], in: folder)
        let client = try counter.open()
        let stream = try await client.open("todo")
        try await counter.make(stream)
        var added = 0
        for round in 0..<3 * effort {
            try await counter.add(50, stream)
            added += 50
            try await eventually("all is consumed") { stream.status.pendingCount == 0 }
            let before = try await epoch(node)
            for _ in 0..<6 {
                let words = ["epoch", "new", "--log", "sqlite:\(folder.path)/log.sqlite"]
                let process = try ChildProcess(BuiltProgram.path, words, errorLog: "\(folder.path)/operator.log")
                try await Task.sleep(for: .milliseconds(Int.random(in: 0...120, using: &numbers)))
                process.killNow()
            }
            _ = try await newEpoch(in: folder.path)
            try await counter.add(10, stream)
            added += 10
            try await eventually("round \(round) is consumed in a later epoch") {
                let (queued, now) = (stream.status.pendingCount, try? await epoch(node))
                guard queued == 0, let now, now != before else { return false }
                // The event may be consumed before the device itself moves to the epoch.
                return stream.status.epoch?.description == now
            }
            try await eventually("\(added) are counted in round \(round)") {
                counter.count(on: stream) == Double(added)
            }
        }
        _ = state
        await client.close()
    }

    @Test("epoch new without a log starts from the snapshot and reports the loss") func startsFromSnapshot()
        async throws
    {
        let folder = try TemporaryFolder(prefix: "reel-epoch-")
        let gateway = try NodeProcess.gateway(in: folder)
        let snapshot = try NodeProcess.snapshot(in: folder)
        let counter = try CountingDevice("device", [gateway.url], in: folder)
        let client = try counter.open()
        let stream = try await client.open("todo")
        try await counter.make(stream)
        try await counter.add(30, stream)
        try await eventually("all is consumed") { stream.status.pendingCount == 0 }
        let seq = stream.status.seq
        _ = try await snapshot.snapshot(of: "todo", upTo: seq)
        await client.close()
        for node in [gateway, snapshot] { node.process.killNow() }
        for suffix in ["", "-wal", "-shm", ".lock"] {
            try? FileManager.default.removeItem(atPath: folder.path + "/log.sqlite" + suffix)
        }

        let beside = try await BuiltProgram.run([
            "snapshot", "--log", "sqlite:\(folder.path)/log.sqlite", "--data", folder.path + "/snapshot",
            "--listen", "127.0.0.1:0",
        ])
        #expect(beside.code == 4 && beside.errors.contains("epoch new --from-snapshot"), "\(beside)")
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/log.sqlite"), "nothing takes its place")
        let without = try await BuiltProgram.run(["epoch", "new", "--log", "sqlite:\(folder.path)/log.sqlite"])
        #expect(without.code == 1 && without.errors.contains("its state with --from-snapshot"), "\(without)")
        let run = try await newEpoch("--from-snapshot", folder.path + "/snapshot", in: folder.path)
        // Events that the device has sent, and whose acks it has not seen, may come after the
        // last seq that it has seen.
        let state = run.output.firstMatch(of: /begins with the state of seq (\d+); lost: what followed/)
        let begin = try #require(state.flatMap { Int64($0.1) }, "\(run)")
        #expect(begin >= seq)

        try gateway.restart()
        try snapshot.restart()
        let again = try counter.open()
        let same = try await again.open("todo")
        try await counter.add(5, same)
        try await eventually("the device has sent all") {
            let queued = same.status.pendingCount
            return queued == 0
        }
        #expect(counter.count(on: same) == 35)
        await again.close()
    }
}
