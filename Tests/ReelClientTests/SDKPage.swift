import ReelClient
import ReelCore

/// The unchanged Swift code of docs/guides/sdk.md and of the README. It is compiled here, and `SDKPageTests` compares
/// and runs it.
enum SDKPage {
    static func readme() async throws {
        let client = try SyncClient(nodes: ["http://127.0.0.1:7350"], store: .file("app.reel"))
        let todo = try await client.open("todo")
        try await todo.publish(.insert("task", id: "1", ["title": "Milk"]))  // returns when safe on this device
        print(try todo.objects("task"))  // it is seen at once, with or without a network
        for await batch in await todo.changes() { print(batch.seq, batch.objects) }
    }

    static func connect(_ saved: String) throws -> SyncClient {
        let transport = try NetTransport(authorities: "authorities.pem")
        let client = try SyncClient(
            nodes: ["https://reel.example:7350"],
            store: .file("ann.reel", user: "ann"),
            transport: transport,
            token: saved,
            renewToken: { try await newToken() }
        )
        return client
    }

    /// Returns a token, as an app's own server would.
    private static func newToken() async throws -> String { throw CancellationError() }

    static func list(_ client: SyncClient) async throws {
        for held in try await client.streams() { print(held.id, held.pendingCount) }
    }

    static func close(_ client: SyncClient) async -> (node: String?, traffic: SyncStatistics) {
        let node = client.status.connectedNode
        let traffic = await client.statistics
        await client.close()
        return (node, traffic)
    }

    static func watch(_ client: SyncClient, _ todo: SyncStream) async {
        for await status in todo.statuses() {
            switch status.content {
            case .neverSynced: print("nothing is here yet")
            case .loading(let bytes, let total): print("\(bytes) of \(total ?? bytes) bytes have arrived")
            case .behind(let seqs): print(seqs ?? 0, "seqs behind, up to date at", status.upToDateMs ?? 0)
            case .upToDate where status.isUpToDate: print("up to date, seq", status.seq)
            case .upToDate: print("complete up to seq", status.seq, "no news arrives:", status.connection)
            }
            if let reason = status.pending.reason { print(status.pending.count, "own events wait:", reason) }
        }
        for await status in client.statuses() {
            for problem in status.problems { print(problem.code, problem.sinceMs, problem.message) }
        }
    }

    static func background(_ client: SyncClient) async throws {
        for held in try await client.streams() { try await client.open(held.id) }
        let report = try await client.syncOnce(deadline: .seconds(20))
        if !report.isComplete { print(report.status.pendingCount, report.status.problems) }
        await client.close()
    }

    static func adopt(_ client: SyncClient, agrees: (String) async -> Bool) async throws {
        func userAgrees(toMoveTo found: String) async -> Bool { await agrees(found) }
        if let found = client.status.otherDeployment, await userAgrees(toMoveTo: found) {
            try await client.adopt(deployment: found)
        }
    }

    static func export(_ client: SyncClient) async throws {
        for try await line in client.queueLines() { print(line) }
    }

    static func adoptUser() throws -> Int {
        let waiting = try SyncClient.adopt(store: "ann.reel", from: "ann", to: "anna")
        return waiting
    }

    static func leave(_ todo: SyncStream, of client: SyncClient) async throws {
        await todo.close()
        try await client.evict("todo")
        try await client.forget("archive")
    }

    static func replace(_ todo: SyncStream) async throws {
        try await todo.replace("task", id: "1", ["title": "Oat milk", "done": true])
    }

    static func signOut(_ client: SyncClient) async throws -> [String] {
        let staying = try await client.signOut(ifWaiting: .refuse)
        return staying
    }

    static func write(_ todo: SyncStream) async throws {
        try await todo.publish(.insert("task", id: "1", ["title": "Milk", "done": false]))
        try await todo.publish(.update("task", id: "1", ["done": true]))
        try await todo.publish(.update("task", id: "1", operations: ["views": .increment(1)]))
        try await todo.publish(.batch([.insert("task", id: "2"), .update("task", id: "1", ["count": 1])]))
    }

    static func fill(_ todo: SyncStream) async throws {
        let (title, count, due): (String, Int, String?) = ("Bread", 2, nil)
        var fields: FieldMap<JSONValue> = ["title": JSONValue(title), "count": JSONValue(count)]
        fields["due"] = due.map { JSONValue($0) }
        try await todo.publish(.insert("task", id: "3", fields))
    }

    static func draw(_ todo: SyncStream) async throws {
        let list = SyncChange.insert("list", ["title": "Shop"])
        try await todo.publish(.batch([list, .insert("task", ["title": "Milk", "list": .string(list.id)])]))
    }

    static func toggle(_ todo: SyncStream) async throws {
        try await todo.publish(.update("task", id: "1", ["favourite": true]))
        try await todo.publish(.update("task", id: "1", operations: ["tags": .change(add: ["shop"], remove: ["home"])]))
    }

    static func read(_ todo: SyncStream) async throws -> (title: String?, isWaiting: Bool, count: Int) {
        let task = try todo.object("task", id: "1")
        let title = task?["title"]?.string
        let isWaiting = task?.isPending == true
        let all = try todo.objects("task")
        return (title, isWaiting, all.count)
    }

    static func readAtOneMoment(_ todo: SyncStream) throws -> Int {
        let (lists, tasks) = try todo.read { moment in
            (try moment.objects("list"), try moment.objects("task"))
        }
        return lists.count + tasks.count
    }

    static func readApart(_ todo: SyncStream) async throws -> (agreed: SyncObject?, waiting: [SyncEvent]) {
        let agreed = try todo.confirmed.object("task", id: "1")
        let waiting = await todo.pending().map(\.event)
        return (agreed, waiting)
    }

    static func listen(
        _ todo: SyncStream,
        showAll: () async -> Void,
        show: (Set<ObjectName>) async -> Void
    ) async {
        for await batch in await todo.changes() {
            if batch.isReset { await showAll() } else { await show(batch.objects) }
        }
    }

    /// The data of a part of an app, which it has made from the objects, with the token of the last changes.
    protocol Saved {
        var token: ChangeToken? { get set }
        mutating func replaceAll(_ objects: [SyncObject])
        mutating func put(_ object: SyncObject)
        mutating func remove(_ name: ObjectName)
    }

    static func follow(_ todo: SyncStream, _ saved: inout some Saved) async throws {
        let changes = try await todo.changes(since: saved.token)
        if changes.isReset { saved.replaceAll(try changes.snapshot.objects("task")) }
        for change in changes.objects {
            if let object = change.object { saved.put(object) } else { saved.remove(change.name) }
        }
        saved.token = changes.token
    }

    static func listenWithoutHolding(
        _ todo: SyncStream,
        show: @escaping @Sendable (Set<ObjectName>) async -> Void
    ) async -> Task<Void, Never> {
        let changes = await todo.changes()
        let task = Task { for await batch in changes { await show(batch.objects) } }
        return task
    }

    static func steer(_ todo: SyncStream) async throws -> Int {
        for event in await todo.queue() { print(event.id, event.state, event.sinceMs, event.reason) }
        if let mistake = await todo.queue().last, mistake.state == .waiting { try await todo.withdraw(mistake.id) }
        let removed = try await todo.discard()
        return removed
    }

    static func flush(_ client: SyncClient) async throws {
        do {
            try await client.flush(deadline: .seconds(10))
        } catch let timeout as FlushTimeout {
            for event in timeout.waiting { print(event.stream, event.id, event.reason) }
        }
    }

    static func enqueue(_ todo: SyncStream) async throws {
        let handle = try todo.enqueue(.update("task", id: "1", ["done": true]))
        try await handle.stored()
    }

    static func compareAndSet(_ todo: SyncStream) async throws {
        let seen = try todo.confirmed.object("task", id: "1")?.fields["title"]?.seq ?? -1
        let change = SyncChange.update("task", id: "1", ["title": "Oat milk"]).guarded(["title": seen])
        let publication = try await todo.publish(SyncEvent(change))
        switch try await publication.outcome() {
        case .applied(let seq): print("in the stream at \(seq)")
        case .rejected(let code, _): print("the stream has rejected it: \(code)")
        case .failed(let error): print("it is not in the stream: \(error)")
        case .unknown(let error): print("it was sent, and its outcome cannot be told: \(error)")
        case .consumed, .superseded: break
        }
    }

    static func hear(_ client: SyncClient) async {
        for await notice in await client.notices() {
            if case .notApplied(_, let event, let outcome) = notice { print(event, outcome) }
        }
    }

    static func edit(_ todo: SyncStream) async throws {
        if let page = try todo.object("page", id: "1"), let text = page["text"]?.string {
            let edit = TextSplice(at: Int64(text.unicodeScalars.count), removing: 0, inserting: " and more")
            try await todo.publish(.update("page", id: "1", operations: ["text": .splice([edit])]), base: page.readAt)
        }
    }
}
