import Foundation
import Glibc
import ReelClient
import ReelCore
import ReelLab
import TestSupport
import Testing

/// Tests the devices and nodes of a deployment that continues, and of one that is created again from nothing.
@Suite(.timeLimit(.minutes(10))) struct DeploymentTests {
    private func deployment(_ node: NodeProcess) async throws -> String {
        let cluster = try await node.members("/v1/cluster")
        let ready = try await node.members("/readyz")
        let found = try #require(cluster["deployment"] as? String)
        #expect(ready["deployment"] as? String == found)
        return found
    }

    @Test("a device adopts a deployment that was made from nothing, with its queue; before that nothing is sent")
    func madeAgain() async throws {
        let folder = try TemporaryFolder(prefix: "reel-deployment-")
        let node = try NodeProcess.serve(in: folder)
        let former = try await deployment(node)
        // The number of the log rises, and the deployment stays.
        let run = try await BuiltProgram.newEpoch(["--log", "sqlite:\(folder.path)/data/log.sqlite"])
        #expect(run.output.contains("\ndeployment \(former)\n"), "\(run)")
        try await eventually("the node has gone over") {
            guard let cluster = try? await node.members("/v1/cluster") else { return false }
            return cluster["number"] as? Int == 1
        }
        #expect(try await deployment(node) == former)

        let device = try CountingDevice("device", [node.url], in: folder)
        var client = try device.open()
        var stream = try await client.open("todo")
        try await device.make(stream)
        try await device.add(3, stream)
        try await eventually("all is consumed") { stream.status.pendingCount == 0 }
        #expect(client.status.deployment == former)
        await client.close()
        client = try device.open(isOnline: false)
        stream = try await client.open("todo")
        for id in 0..<3 { try await stream.publish(.insert("task", id: "\(id)")) }
        await client.close()

        node.process.killNow()
        try FileManager.default.removeItem(atPath: folder.path + "/data")
        try node.restart()
        let found = try await deployment(node)
        #expect(found != former)
        client = try device.open()
        stream = try await client.open("todo")
        try await eventually("the device says which deployment it has found") {
            let state = client.status
            return state.otherDeployment == found && state.problems.contains { $0.code == .wrongDeployment }
        }
        #expect(stream.status.pendingCount == 3)
        let head = try await node.members("/v1/streams/todo/head")
        #expect(head["head"] as? Int == -1, "\(head)")

        // The exported lines are valid input of `reel publish`.
        var lines: [String] = []
        for try await line in client.queueLines() { lines.append(line) }
        let events = try lines.map { line -> String in
            let object = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            #expect(object["stream"] as? String == "todo")
            let event = try JSONSerialization.data(withJSONObject: try #require(object["event"]))
            return String(decoding: event, as: UTF8.self)
        }
        let copy = try await BuiltProgram.run(["publish", "copy", "--outcome", "--url", node.url] + events)
        #expect(copy.code == 0 && copy.output.matches(of: /"outcome":"applied"/).count == 3, "\(copy)")

        try await client.adopt(deployment: found)
        try await eventually("the queue is sent") { stream.status.pendingCount == 0 }
        #expect(try stream.confirmed.objects("task").map(\.name.id) == ["0", "1", "2"])
        #expect(try stream.confirmed.objects("counter").isEmpty, "what was confirmed is gone with the former log")
        #expect(client.status.problems.isEmpty)
        await client.close()
    }

    @Test("where the log and its file are lost, the snapshots name the deployment, and devices continue")
    func lostLog() async throws {
        let folder = try TemporaryFolder(prefix: "reel-deployment-")
        let node = try NodeProcess.serve(in: folder)
        let former = try await deployment(node)
        let log = "\(folder.path)/data/log.sqlite"
        _ = try await BuiltProgram.newEpoch(["--log", "sqlite:\(log)"])
        let device = try CountingDevice("device", [node.url], in: folder)
        var client = try device.open()
        var stream = try await client.open("todo")
        try await device.make(stream)
        try await eventually("all is consumed in the second log") {
            let (queued, epoch) = (stream.status.pendingCount, stream.status.epoch?.description)
            return queued == 0 && epoch != former
        }
        _ = try await node.snapshot(of: "todo", upTo: stream.status.seq)
        await client.close()
        node.process.killNow()
        for suffix in ["", "-wal", "-shm", ".lock"] { try? FileManager.default.removeItem(atPath: log + suffix) }
        let run = try await BuiltProgram.newEpoch(["--log", "sqlite:\(log)", "--from-snapshot", folder.path + "/data"])
        #expect(run.code == 0 && run.output.contains("\ndeployment \(former)\n"), "\(run)")
        try node.restart()
        #expect(try await deployment(node) == former)
        client = try device.open()
        stream = try await client.open("todo")
        try await device.add(2, stream)
        try await eventually("the device has sent all without help") { stream.status.pendingCount == 0 }
        #expect(device.count(on: stream) == 2)
        await client.close()
    }

    @Test("a cold device in a later epoch reports a missing snapshot node within seconds, and starts once one runs")
    func noSnapshotNode() async throws {
        let folder = try TemporaryFolder(prefix: "reel-deployment-")
        let gateway = try NodeProcess.gateway(in: folder)
        let author = try CountingDevice("author", [gateway.url], in: folder)
        var client = try author.open()
        var stream = try await client.open("todo")
        try await author.make(stream)
        try await eventually("it is consumed") { stream.status.pendingCount == 0 }
        await client.close()
        let run = try await BuiltProgram.newEpoch(["--log", "sqlite:\(folder.path)/log.sqlite"])
        #expect(run.code == 0, "\(run)")
        try await eventually("the gateway has gone over") {
            guard let cluster = try? await gateway.members("/v1/cluster") else { return false }
            return cluster["number"] as? Int == 1
        }
        let device = try CountingDevice("cold", [gateway.url], in: folder)
        client = try device.open()
        stream = try await client.open("todo")
        try await eventually("the device says so") {
            stream.status.problems.contains { $0.code == .nodeBehind }
        }
        try await eventually("it stays with the node") { client.status.connectedNode == gateway.url }
        let snapshot = try NodeProcess.snapshot(in: folder)
        try await eventually("the device starts") { try stream.confirmed.objects("counter").count == 1 }
        try await eventually("it says so no longer") { stream.status.problems.isEmpty }
        await client.close()
        _ = snapshot
    }

    @Test("a log that is locked by another process is a problem of the stream, with its age, until it takes the event")
    func lockedLog() async throws {
        let folder = try TemporaryFolder(prefix: "reel-deployment-")
        let node = try NodeProcess.serve(in: folder)
        let device = try CountingDevice("device", [node.url], in: folder)
        let client = try device.open()
        let stream = try await client.open("todo")
        try await device.make(stream)
        try await eventually("the first event is consumed") { stream.status.pendingCount == 0 }
        let lock = Glibc.open(folder.path + "/data/log.sqlite.lock", O_RDWR | O_CLOEXEC)
        try #require(lock >= 0 && flock(lock, LOCK_EX) == 0)
        defer { Glibc.close(lock) }
        try await device.add(1, stream)
        try await eventually("the device says so") {
            stream.status.problems.contains { $0.code == .logUnavailable }
        }
        let problem = try #require(stream.status.problems.first)
        #expect(Int64(Date().timeIntervalSince1970 * 1_000) - problem.sinceMs >= 5_000)
        #expect(flock(lock, LOCK_UN) == 0)
        try await eventually("the event is consumed") { stream.status.pendingCount == 0 }
        #expect(client.status.problems.isEmpty)
        await client.close()
    }
}
