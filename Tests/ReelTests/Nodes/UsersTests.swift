import Foundation
import ReelClient
import ReelCore
import ReelLab
import TestSupport
import Testing

@testable import ReelTool

/// Tests several users of one device, with a node that has keys.
@Suite(.timeLimit(.minutes(20))) struct UsersTests {
    private let folder: TemporaryFolder
    private let node: NodeProcess
    private let transport: NetTransport

    init() async throws {
        folder = try TemporaryFolder(prefix: "reel-users-")
        let (secret, half) = (folder.path + "/keys.json", folder.path + "/public.json")
        try await Self.output(["token", "keygen"]).write(toFile: secret, atomically: true, encoding: .utf8)
        let keys = try await Self.output(["token", "keygen", "--public", secret])
        try keys.write(toFile: half, atomically: true, encoding: .utf8)
        node = try NodeProcess(["serve", "--data", folder.path + "/data", "--jwks", half], in: folder)
        transport = try NetTransport()
    }

    private static func output(_ words: [String]) async throws -> String {
        let run = await CommandRun(words)
        #expect(run.code == .done, "\(run.errors)")
        return run.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    private func token(_ user: String) async throws -> String {
        let keys = folder.path + "/keys.json"
        return try await Self.output(
            ["token", "issue", "--jwks", keys, "--sub", user, "--read", "*", "--publish", "*", "--for", "3600"]
        )
    }

    private func client(
        _ file: String,
        user: String?,
        token subject: String,
        isOnline: Bool = true
    ) async throws -> SyncClient {
        try SyncClient(
            nodes: [isOnline ? node.url : "http://127.0.0.1:9"],
            store: .file("\(folder.path)/\(file)", user: user),
            transport: transport,
            token: try await token(subject)
        )
    }

    private func refusal(_ body: () async throws -> Void) async -> String? {
        do {
            try await body()
            return nil
        } catch {
            return (error as? ReelError)?.code.rawValue ?? "\(error)"
        }
    }

    /// Publishes a note with a client of its own. With a network, it waits for the outcome.
    private func write(_ note: String, _ file: String, as user: String, isOnline: Bool = true) async throws {
        let client = try await client(file, user: user, token: user, isOnline: isOnline)
        let stream = try await client.open("app")
        let publication = try await stream.publish(.insert("note", id: note))
        if isOnline {
            guard case .applied = try await publication.outcome() else {
                throw NeverCame(description: "\(note) applied")
            }
            try await eventually { stream.status.pendingCount == 0 }
        }
        await client.close()
    }

    /// Returns the author and the note of each event in the log, and the sites that two users have used.
    private func log() async throws -> (events: [String], shared: [String]) {
        let line = "curl -sS -H 'Authorization: Bearer \(try await token("reader"))'"
        let text = try await Shell.output("\(line) '\(node.url)/v1/streams/app/events?after=-1'")
        let answer = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any] ?? [:]
        var names: [String: Set<String>] = [:]
        var events: [String] = []
        for event in answer["events"] as? [[String: Any]] ?? [] {
            let by = event["by"] as? String ?? "nobody"
            names[event["site"] as? String ?? "", default: []].insert(by)
            events.append("\(by) \(event["id"] as? String ?? (event["last"] == nil ? "noop" : "last"))")
        }
        return (events, names.filter { $0.value.count > 1 }.map(\.key))
    }

    @Test("a device with alternating users, with or without a network, publishes each event once under its own user")
    func alternatesUsers() async throws {
        try await write("1", "ann", as: "ann", isOnline: false)
        #expect(await refusal { _ = try await client("ann", user: "bob", token: "bob") } == "store_user")
        #expect(await refusal { _ = try await client("ann", user: nil, token: "bob") } == "store_user")
        #expect(await refusal { _ = try await client("ann", user: "ann", token: "bob") } == "store_user")
        try await write("2", "bob", as: "bob")
        try await write("3", "ann", as: "ann")
        try await write("4", "bob", as: "bob", isOnline: false)
        try await write("5", "ann", as: "ann", isOnline: false)
        #expect(try SyncClient.adopt(store: folder.path + "/ann", from: "ann", to: "anna") == 1)
        #expect(await refusal { _ = try await client("ann", user: "ann", token: "ann") } == "store_user")
        try await write("6", "ann", as: "anna")
        try await write("7", "bob", as: "bob")
        let bob = try await client("bob", user: "bob", token: "bob")
        #expect(try await bob.signOut() == [])
        try await write("8", "bob", as: "ann")
        let (events, shared) = try await log()
        let expected = ["bob 2", "ann 1", "ann 3", "anna 5", "anna 6", "bob 4", "bob 7", "bob last", "ann 8"]
        #expect(events == expected)
        #expect(shared == [], "no event is foreign")
    }

    @Test("a client does not send a renewed token of another user, and sends its queue with the next own token")
    func ignoresForeignToken() async throws {
        let (ann, bob) = (try await token("ann"), try await token("bob"))
        let source = Turns([bob, ann])
        let client = try SyncClient(
            nodes: [node.url],
            store: .file("\(folder.path)/ann", user: "ann"),
            transport: transport,
            renewToken: { await source.next() }
        )
        let notices = await client.notices()
        try await client.open("app").publish(.insert("note", id: "1")).outcome()
        await client.close()
        #expect(await notices.contains(.wrongUser(expected: "ann", found: "bob")))
        #expect(try await log().events == ["ann 1"])
    }
}

/// Returns one token after another, and the last one from then on.
private actor Turns {
    private var tokens: [String]

    init(_ tokens: [String]) { self.tokens = tokens }

    func next() -> String { tokens.count > 1 ? tokens.removeFirst() : tokens[0] }
}
