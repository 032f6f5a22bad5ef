import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// The effect of an app's own events on the shown objects, from `publish` to their outcome.
@Suite(.timeLimit(.minutes(5))) struct VisibleTests {
    @Test("an app sees its own event at once without a network and after a restart") func anOwnEventIs() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        try await network.on { $0.down = ["a"] }
        var client = try network.client(store: .file(path))
        var todo = try await client.open("todo")
        try await todo.publish(.insert("task", id: "1", ["title": "Milk"]))
        for isStartedAgain in [false, true] {
            if isStartedAgain {
                await client.close()
                client = try network.client(store: .file(path))
                todo = try await client.open("todo")
            }
            let task = try todo.object("task", id: "1")
            #expect(task?["title"] == "Milk" && task?.isPending == true && task?.fields["title"]?.seq == nil)
            #expect(try todo.objects("task").map(\.name.id) == ["1"])
            #expect(try todo.confirmed.objects("task").isEmpty)
            #expect(await todo.pending().map(\.event) == [.insert("task", id: "1", ["title": "Milk"])])
        }
        let publication = await todo.pending()[0]
        try await network.on { $0.down = [] }
        guard case .applied(let seq) = try await publication.outcome() else { throw Wrong() }
        let task = try todo.object("task", id: "1")
        #expect(task?.isPending == false && task?.seq == seq)
        #expect(try todo.confirmed.object("task", id: "1") == task)
        #expect(await todo.pending().isEmpty)
        await client.close()
    }

    @Test("a printed object shows its name and its fields as JSON") func anObjectThatIs() async throws {
        let client = try FakeNetwork().client()
        let todo = try await client.open("todo")
        try await todo.publish(.insert("task", id: "1", ["title": "\"Milk\"", "done": true, "of": ["ann", 2, nil]]))
        let tasks = try todo.objects("task")
        #expect("\(tasks)" == #"[task/1 {"done":true,"of":["ann",2,null],"title":"\"Milk\""}]"#)
        #expect("\(tasks.map(\.name))" == "[task/1]")
        await client.close()
    }

    @Test("an own edit is shown exactly once between its ack and its return") func betweenItsAckAnd() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s", from: .beginning)
        try await stream.publish(.insert("m", id: "1", ["text": "ab"])).outcome()
        try await network.on { $0.isSilent = true }
        let edit = FieldOperation.splice([TextSplice(at: 2, removing: 0, inserting: "c")])
        let publication = try await stream.publish(.update("m", id: "1", operations: ["text": edit]))
        try await publication.acked()
        #expect(try stream.object("m", id: "1")?["text"] == "abc")
        #expect(try stream.confirmed.object("m", id: "1")?["text"] == "ab")
        try await network.on { network in
            network.isSilent = false
            network.pushAll()
        }
        try await publication.outcome()
        #expect(try stream.object("m", id: "1")?["text"] == "abc")
        #expect(try stream.confirmed.object("m", id: "1")?["text"] == "abc")
        await client.close()
    }

    @Test("a device hides a rejected event and notifies the app, even after a restart")
    func hidesRejectedEvent() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        let (other, theirs) = try await network.author(of: 1, on: "b")
        var client = try network.client(store: .file(path))
        var mine = try await client.open("s")
        try await mine.waitUntil(seq: 0)
        try await network.on { $0.kill("a") }
        let event = SyncEvent.update("m", id: "0", ["title": "late"])
        try await mine.publish(event)
        try await theirs.publish(.delete("m", id: "0")).outcome()
        #expect(try mine.object("m", id: "0")?["title"] == "late")
        await client.close()

        client = try network.client(store: .file(path))
        let notices = await client.notices()
        mine = try await client.open("s")
        #expect(try mine.object("m", id: "0")?["title"] == "late")
        try await network.on { $0.down = [] }
        for await case .notApplied("s", event, let outcome) in notices {
            guard case .failed(let error) = outcome, error.code == .deleted else { throw Wrong() }
            break
        }
        #expect(try mine.object("m", id: "0") == nil)
        await client.close()
        await other.close()
    }

    @Test("a device queues a delete of an object that another device has inserted meanwhile") func queuesDelete()
        async throws
    {
        let network = try FakeNetwork()
        try await network.on { $0.readers = ["reader"] }
        let client = try network.client(token: "reader")
        let notices = await client.notices()
        let mine = try await client.open("s", from: .beginning)
        try await mine.publish(.insert("m", id: "held"))
        for await case .publishingPaused in notices { break }
        // The device does not send the events that wait after the held event.
        try await mine.publish(.insert("m", id: "0"))
        let (other, _) = try await network.author(of: 1, on: "b")
        try await mine.waitUntil(seq: 0)
        try await mine.publish(.delete("m", id: "0"))
        #expect(try mine.object("m", id: "0") == nil)
        #expect(await mine.pendingCount == 2)
        await client.close()
        await other.close()
    }

    @Test("a device hides a permanently refused event") func hidesRefusedEvent() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s")
        guard case .applied(let seq) = try await stream.publish(.insert("m", id: "1", ["n": 1])).outcome() else {
            throw Wrong()
        }
        try await network.on { $0.kill("a") }
        let change = SyncChange.update("m", id: "1", ["n": 2]).guarded(["n": seq])
        let publication = try await stream.publish(SyncEvent(change))
        #expect(try stream.object("m", id: "1")?["n"] == 2)
        // The event names a seq of the log that ends here.
        try await network.on { network in
            network.goOver(to: Epoch(2), lagging: [])
            network.down = []
        }
        guard case .failed = try await publication.outcome() else { throw Wrong() }
        #expect(try stream.object("m", id: "1")?["n"] == 1)
        await client.close()
    }

    @Test("a device hides an object that is absent in the next epoch, even with a queued event for it")
    func hidesAbsentObjects()
        async throws
    {
        let network = try FakeNetwork()
        let (other, _) = try await network.author(of: 1, on: "b")
        let client = try network.client()
        let stream = try await client.open("s")
        try await stream.waitUntil(seq: 0)
        try await network.on { $0.kill("a") }
        try await stream.publish(.update("m", id: "0", ["n": 2]))
        #expect(try stream.object("m", id: "0")?["n"] == 2)
        try await network.on { network in
            network.isSilent = true
            network.beginEpoch(Epoch(2))
            network.down = []
        }
        try await eventually { await stream.epoch == Epoch(2) }
        #expect(try stream.object("m", id: "0") == nil)
        // The device has held the object, so the event does not revive it.
        try await eventually { await stream.pendingCount == 0 }
        #expect(try stream.object("m", id: "0") == nil)
        await client.close()
        await other.close()
    }

    @Test("a reader of changes hears of an own event when it is published and when it is confirmed")
    func aReaderOfChanges() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s", from: .beginning)
        try await stream.publish(.insert("m", id: "0")).outcome()
        try await network.on { $0.isSilent = true }
        var batches = await stream.changes().makeAsyncIterator()
        try await stream.publish(.insert("m", id: "1", ["n": 1]))
        #expect(await batches.next()?.objects == [ObjectName("m", id: "1")])
        #expect(try stream.object("m", id: "1")?.isPending == true)
        try await network.on { network in
            network.isSilent = false
            network.pushAll()
        }
        #expect(await batches.next()?.objects == [ObjectName("m", id: "1")])
        #expect(try stream.object("m", id: "1")?.isPending == false)
        await client.close()
    }

    @Test("a device shows the objects of the former epoch until the new state arrives") func whileANewEpoch()
        async throws
    {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s")
        try await stream.publish(.insert("m", id: "0")).outcome()
        try await network.on { network in
            network.kill("a")
            network.holdsAnswers = true
            network.goOver(to: Epoch(2), lagging: [])
            network.down = []
        }
        try await eventually { await stream.epoch == nil }
        try await stream.publish(.insert("m", id: "1"))
        #expect(try stream.objects("m").map(\.name.id) == ["0", "1"])
        try await network.on { $0.answerHeld() }
        try await eventually { await stream.pendingCount == 0 }
        #expect(try stream.confirmed.objects("m").map(\.name.id) == ["0", "1"])
        await client.close()
    }
}
