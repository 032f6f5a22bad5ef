import Foundation
import ReelCore
import ScriptedNodes

@testable import ReelClient

/// The log, the node's answers and the stores with which the runs of `device-writer` begin.
final class DeviceScene: Sendable {
    /// The text that only content of the user has.
    static let marker = "words-of-ann"
    static let objects = 1_200
    static let (s, t) = (StreamName("s")!, StreamName("t")!)
    private static let text = String(repeating: marker + " ", count: 60)

    /// The folder of the stores, and of the folders with the node's answers.
    private let folder: String
    /// The log of the first snapshot.
    let log: FoldedLog
    /// The log after the delta.
    let later: FoldedLog
    /// The records of the delta, and those that arrive one by one after it.
    let (changes, events): ([FoldedLog.Record], [FoldedLog.Record])
    /// The digest of the stream `s` at each seq at which a device may have it.
    let digests: [Seq: UInt64]

    /// The path of a store that has read both streams and has nothing in its queue.
    private var readStore: String { folder + "/read" }
    /// The path of such a store with an event in each queue.
    private var waitingStore: String { folder + "/waiting" }

    static func make() async throws -> DeviceScene {
        let log = FoldedLog()
        log.author(.insert("count", id: "1", ["n": 0]), in: s)
        for id in 0..<objects { log.author(.insert("m", id: "\(1_000 + id)", ["text": .string(text)]), in: s) }
        log.author(.insert("m", id: "1"), in: t)
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("reel-killed-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        let path = folder.path
        try await readStreams(of: log, store: path + "/read")
        try FileManager.default.copyItem(atPath: path + "/read", toPath: path + "/waiting")
        try await queueEvents(path + "/waiting")
        return try DeviceScene(path, log)
    }

    private init(_ folder: String, _ log: FoldedLog) throws {
        (self.folder, self.log, later) = (folder, log, log.copy())
        let (s, text) = (Self.s, JSONValue.string("later " + Self.text))
        var digests: [Seq: UInt64] = [:]
        func note(_ log: FoldedLog) {
            var fold = log.fold(s)
            digests[log.head] = fold.digest()
        }
        note(log)
        let updates = (0..<650).map { SyncEvent.update("m", id: "\(1_000 + $0)", ["text": text]) }
        let deletes = (0..<60).map { SyncEvent.delete("m", id: "\(2_000 + $0)") }
        let inserts = (0..<20).map { SyncEvent.insert("m", id: "\(3_000 + $0)", ["text": text]) }
        changes = (updates + deletes + inserts).map { [later] in later.author($0, in: s) }
        note(later)
        let counting = later.copy()
        var events: [FoldedLog.Record] = []
        for _ in 0..<6 {
            events.append(counting.author(.update("count", id: "1", operations: ["n": .increment(1)]), in: s))
            note(counting)
        }
        (self.events, self.digests) = (events, digests)
        try writeScript(of: log, to: "first")
        try writeScript(of: later, to: "later")
    }

    /// Writes the answers of a node of this log to a folder. The deltas begin at the stores' seq.
    private func writeScript(of log: FoldedLog, to name: String) throws {
        let script = URL(fileURLWithPath: folder + "/" + name)
        try FileManager.default.createDirectory(at: script, withIntermediateDirectories: false)
        for stream in [Self.s, Self.t] {
            try Data(try log.snapshot(of: stream)).write(to: script.appendingPathComponent("\(stream).snapshot"))
            let delta = try log.snapshot(of: stream, after: self.log.head)
            try Data(delta).write(to: script.appendingPathComponent("\(stream).delta"))
        }
        let lines = events.map { String(decoding: $0.value, as: UTF8.self) + "\n" }
        try Data(lines.joined().utf8).write(to: script.appendingPathComponent("events"))
    }

    /// Returns the path of the folder with the node's answers for a work, and the last seq of the node's log.
    func script(for work: String) -> (folder: String, head: Seq) {
        work == "delta" ? (folder + "/later", later.head) : (folder + "/first", log.head)
    }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    /// Returns the path of a store that the work begins with, which is in use by no other run.
    func store(for work: String) throws -> String {
        let path = folder + "/" + UUID().uuidString
        let source = ["delta": readStore, "load": nil][work, default: waitingStore]
        if let source { try FileManager.default.copyItem(atPath: source, toPath: path) }
        return path
    }

    /// Reads both streams, and publishes an event to `t`.
    private static func readStreams(of log: FoldedLog, store: String) async throws {
        let node = try log.node()
        let client = try client(store, node)
        for name in ["s", "t"] { try await client.open(name).waitUntil(seq: log.head) }
        try await client.open("t").publish(.insert("own", id: "first", ["text": .string(marker)])).outcome()
        try await client.open("s").waitUntil(seq: log.head)
        while !(try await node.isQuiet) { try await Task.sleep(for: .milliseconds(2)) }
        await client.close()
    }

    /// Publishes an event to each stream without a network.
    private static func queueEvents(_ store: String) async throws {
        let client = try client(store, try FoldedLog().node(), nodes: [])
        for name in ["s", "t"] {
            try await client.open(name).publish(.insert("own", id: "waiting", ["text": .string(marker)]))
        }
        await client.close()
    }

    static func client(
        _ store: String,
        _ node: ScriptedNode,
        nodes: [String] = ["a"],
        user: String = "ann"
    ) throws -> SyncClient {
        try SyncClient(nodes: nodes, store: .file(store, user: user), transport: node, seed: 9)
    }
}
