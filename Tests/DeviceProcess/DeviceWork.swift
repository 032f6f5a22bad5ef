import Glibc
import ReelClient
import ReelCore
import ScriptedNodes
import Synchronization

/// A piece of work of a device. A line that the process prints states what the store has from then on.
enum DeviceWork: String {
    /// Reads the first snapshot of the stream `s`. `shown N`: the first N objects can be read. `at N`: the device is at
    /// seq N.
    case load
    /// Opens the store with an older state, reads a delta, and then some events. Prints `at N` too.
    case delta
    /// Publishes events one after the other. `published ID`: `publish` has returned.
    case publish
    /// Evicts the stream `s`, without a network. `evicted`: `evict` has returned.
    case evict
    /// Forgets the stream `s`, without a network. `forgotten`: `forget` has returned.
    case forget
    /// Signs the user out, and erases the events that wait. `leaving` precedes the call. `left`: `signOut` has
    /// returned.
    case signOut
    /// The same, while the app holds a moment of the stream. SQLite could not copy the WAL of a moment that is in use.
    case signOutBesideReader

    private static let publications = 12

    func run(store path: String, script: NodeScript) async throws {
        switch self {
        case .load: try await load(path, script)
        case .delta: try await delta(path, script)
        case .publish: try await publish(path, script)
        case .evict, .forget: try await remove(path, script)
        case .signOut, .signOutBesideReader: try await signOut(path, script)
        }
    }

    private func load(_ path: String, _ script: NodeScript) async throws {
        let progress = ShownObjects()
        let node = try script.node { progress.look() }
        let client = try client(path, node)
        let stream = try await client.open("s")
        progress.begin(stream)
        try await stream.waitUntil(seq: script.head)
        say("at \(script.head)")
        try await finish(client, node)
    }

    private func delta(_ path: String, _ script: NodeScript) async throws {
        let node = try script.node()
        let client = try client(path, node)
        let stream = try await client.open("s")
        try await stream.waitUntil(seq: script.head)
        say("at \(script.head)")
        for (index, event) in script.events.enumerated() {
            node.append(to: StreamName("s")!) { _ in event }
            let seq = script.head + Seq(index) + 1
            try await stream.waitUntil(seq: seq)
            say("at \(seq)")
        }
        try await finish(client, node)
    }

    private func publish(_ path: String, _ script: NodeScript) async throws {
        let node = try script.node()
        let client = try client(path, node)
        let stream = try await client.open("s")
        try await stream.waitUntil(seq: script.head)
        for number in 0..<Self.publications {
            let id = "own-\(number)"
            // A batch is never merged, and its parts happen together.
            let counted = SyncChange.update("count", id: "1", operations: ["n": .increment(1)])
            let publication = try await stream.publish(.batch([.insert("own", id: id), counted]))
            say("published \(id)")
            if number % 3 == 2 { try await publication.outcome() }
        }
        try await client.flush(deadline: .seconds(60))
        try await finish(client, node)
    }

    private func remove(_ path: String, _ script: NodeScript) async throws {
        let node = try script.node()
        let client = try client(path, node, nodes: [])
        for name in ["s", "t"] { try await client.open(name) }
        if self == .evict {
            try await client.evict("s")
            say("evicted")
        } else {
            try await client.forget("s", discardingQueue: true)
            say("forgotten")
        }
        try await finish(client, node)
    }

    private func signOut(_ path: String, _ script: NodeScript) async throws {
        let node = try script.node()
        let client = try client(path, node)
        let stream = try await client.open("s")
        try await stream.waitUntil(seq: script.head)
        try await quiet(node)
        let moment = self == .signOutBesideReader ? try stream.read { $0 } : nil
        say("leaving")
        try await client.signOut(ifWaiting: .erase)
        withExtendedLifetime(moment) {}
        say("left")
    }

    // MARK: Steps

    private func client(_ path: String, _ node: ScriptedNode, nodes: [String] = ["a"]) throws -> SyncClient {
        try SyncClient(nodes: nodes, store: .file(path, user: "ann"), transport: node, seed: 5)
    }

    /// Waits for the end of the upkeep, and closes the client.
    private func finish(_ client: SyncClient, _ node: ScriptedNode) async throws {
        try await quiet(node)
        await client.close()
    }

    private func quiet(_ node: ScriptedNode) async throws {
        while !(try await node.isQuiet) { try await Task.sleep(for: .milliseconds(2)) }
    }
}

/// The objects of a stream that can be read while its first snapshot arrives.
private final class ShownObjects: Sendable {
    private let state = Mutex<(stream: SyncStream?, count: Int)>((nil, 0))

    func begin(_ stream: SyncStream) { state.withLock { $0.stream = stream } }

    /// Prints the number of objects that can be read, if it has grown.
    func look() {
        state.withLock { state in
            let former = state.count
            while let stream = state.stream, (try? stream.object("m", id: "\(1_000 + state.count)")) != nil {
                state.count += 1
            }
            if state.count > former { say("shown \(state.count)") }
        }
    }
}

/// Prints a line with one call, so that a killed process leaves only complete lines.
func say(_ line: String) {
    _ = (line + "\n").withCString { write(1, $0, strlen($0)) }
}
