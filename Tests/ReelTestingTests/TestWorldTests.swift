import Reel
import ReelClient
import ReelCore
import Synchronization
import TestSupport
import Testing

@testable import ReelTesting

/// The node, the network and the time of a world.
@Suite(.timeLimit(.minutes(5))) struct TestWorldTests {
    private let world = TestWorld(seed: 7)

    private func open(_ device: TestDevice) async throws -> Dataset {
        try await device.client.open("todo", models: [TodoTask.self])
    }

    @Test("two devices have the same objects after cuts and kills") func convergence() async throws {
        let (ann, bob) = (try world.device("ann"), try world.device("bob"))
        let (one, two) = (try await open(ann), try await open(bob))
        try await one.insert(TodoTask(id: "1", title: "Milk"))
        try await world.settle()
        #expect(try two.object("1" as ModelID<TodoTask>)?.title == "Milk")

        world.cut(ann)
        try await one.update("1" as ModelID<TodoTask>) { $0.votes += 1 }
        try await two.update("1" as ModelID<TodoTask>) { $0.votes += 2 }
        try await world.settle()
        #expect(try one.object("1" as ModelID<TodoTask>)?.votes == 1)
        #expect(try two.object("1" as ModelID<TodoTask>)?.votes == 2)
        #expect(ann.client.status.connectedNode == nil)

        bob.kill()
        #expect(!bob.isRunning)
        try bob.start()
        let again = try await open(bob)
        world.heal(ann)
        try await world.settle()
        #expect(try one.object("1" as ModelID<TodoTask>)?.votes == 3)
        #expect(try again.object("1" as ModelID<TodoTask>)?.votes == 3)
        #expect(world.log("todo").map(\.outcome) == [.applied, .applied, .applied])
        #expect(world.log("todo").map(\.device) == ["ann", "bob", "ann"])
    }

    @Test("the same calls with the same seed give the same log and the same time") func repeats() async throws {
        func run(_ seed: UInt64) async throws -> ([String], Duration) {
            let world = TestWorld(seed: seed)
            let (ann, bob) = (try world.device("ann"), try world.device("bob"))
            let (one, two) = (try await open(ann), try await open(bob))
            for number in 0..<10 {
                for part in 0..<3 {
                    try await one.insert(TodoTask(id: ModelID("a\(number)/\(part)"), title: "One"))
                    try await two.insert(TodoTask(id: ModelID("b\(number)/\(part)"), title: "Two"))
                }
                await world.advance(.milliseconds(30))
            }
            world.cut(ann)
            try await one.insert(TodoTask(id: "c", title: "Three"))
            await world.advance(.seconds(5))
            world.heal(ann)
            try await world.settle()
            return (world.log("todo").map(\.description), world.now)
        }
        let first = try await run(3)
        for _ in 0..<3 { #expect(try await run(3) == first) }
        #expect(try await run(4) != first)
    }

    @Test("`settle` names the device, the stream and what it waits for") func unsettled() async throws {
        let ann = try world.device("ann")
        let todo = try await open(ann)
        try await world.settle()
        try world.refuse(.writes, with: .forbidden, of: ann)
        try await todo.insert(TodoTask(id: "1", title: "Milk"))
        let error = await #expect(throws: NotSettled.self) { try await world.settle(limit: .seconds(20)) }
        let missing = try #require(error?.missing.first)
        let expected =
            #"ann, stream "todo": 1 own event waits; the oldest waits because of forbidden; forbidden: "#
            + "the test makes the node refuse writes of ann"
        #expect(missing == expected)
        #expect(world.now >= .seconds(10))
        world.heal(ann)
        try await world.settle()
        #expect(world.log("todo").count == 1)
    }

    @Test("`settle` asks for a stream that is not open and has waiting events") func closedStream() async throws {
        let ann = try world.device("ann")
        try await open(ann).insert(TodoTask(id: "1", title: "Milk"))
        ann.kill()
        try ann.start()
        let error = await #expect(throws: NotSettled.self) { try await world.settle() }
        let expected = #"ann, stream "todo": 1 own event waits and the stream is not open: open it in the test"#
        #expect(error?.missing == [expected])
        _ = try await open(ann)
        try await world.settle()
    }

    @Test("an event that the fold rejects has its outcome in the log and for its author") func rejected() async throws {
        let (ann, bob) = (try world.device("ann"), try world.device("bob"))
        let (one, two) = (try await open(ann), try await open(bob))
        let milk = TodoTask(id: "1", title: "Milk")
        try await one.insert(milk)
        try await world.settle()
        world.cut(bob)
        try await one.update(milk.id) { $0.title = "Bread" }
        let write = try await two.update(milk.id, if: .unchanged(\.title, since: milk)) { $0.votes += 1 }
        try await world.settle()
        world.heal()
        try await world.settle()
        guard case .rejected(.guard, _) = try await write.outcome() else {
            Issue.record("found \(try await write.outcome()), expected rejected(guard)")
            return
        }
        #expect(world.log("todo").map(\.outcome) == [.applied, .applied, .rejected(.guard)])
        #expect(try two.object(milk.id)?.votes == 0)
    }

    @Test("a temporary refusal ends after its time, and the events are sent", arguments: TestRequests.allCases)
    func temporary(requests: TestRequests) async throws {
        let ann = try world.device("ann")
        try world.refuse(requests, with: .logUnavailable, for: .seconds(60))
        let todo = try await open(ann)
        try await todo.insert(TodoTask(id: "1", title: "Milk"))
        await world.advance(.seconds(50))
        #expect(todo.stream.status.pendingCount == 1)
        #expect(world.log("todo").isEmpty)
        try await world.settle()
        #expect(world.log("todo").count == 1)
    }

    @Test("a code that only a device has is refused") func deviceCode() {
        let error = #expect(throws: ReelError.self) { try world.refuse(.writes, with: .storeFull) }
        #expect(error?.code == .badRequest)
    }

    @Test("a restart keeps the queue and the objects, and calls of the ended process throw")
    func restart() async throws {
        let ann = try world.device("ann")
        let todo = try await open(ann)
        world.cut(ann)
        let write = try await todo.insert(TodoTask(id: "1", title: "Milk"))
        let outcome = Swift.Task { try await write.outcome() }
        ann.kill()
        await #expect(throws: ReelError.self) { try await outcome.value }
        await #expect(throws: (any Error).self) { try await todo.insert(TodoTask(id: "2", title: "Bread")) }
        try ann.start()
        #expect(throws: ReelError.self) { try ann.start() }
        let again = try await open(ann)
        #expect(again.stream.status.pendingCount == 1)
        #expect(try again.object("1" as ModelID<TodoTask>)?.title == "Milk")
        #expect(try again.object("2" as ModelID<TodoTask>) == nil)
        world.heal()
        try await world.settle()
        #expect(world.log("todo").count == 1)
    }

    @Test("a name is used once, and closing a client ends the process") func names() async throws {
        let ann = try world.device("ann")
        #expect(throws: ReelError.self) { try world.device("ann") }
        _ = try await open(ann)
        await ann.client.close()
        #expect(!ann.isRunning)
        try ann.start()
        _ = try await open(ann)
        try await world.settle()
    }

    @Test("a cut and a kill lose the messages on their way") func lostMessages() async throws {
        let ann = try world.device("ann")
        let todo = try await open(ann)
        try await world.settle()
        try await todo.insert(TodoTask(id: "1", title: "Milk"))
        world.cut(ann)
        await world.advance(.seconds(10))
        #expect(world.log("todo").isEmpty)
        world.heal()
        try await world.settle()
        #expect(world.log("todo").count == 1)
        try await todo.insert(TodoTask(id: "2", title: "Bread"))
        ann.kill()
        try await world.settle()
        await world.advance(.seconds(10))
        #expect(world.log("todo").count == 1)
    }

    @Test("an event whose answer is lost is in the log once") func lostAnswer() async throws {
        let ann = try world.device("ann")
        let todo = try await open(ann)
        try await world.settle()
        try await todo.insert(TodoTask(id: "1", title: "Milk"))
        while world.log("todo").isEmpty { await world.advance(.milliseconds(1)) }
        world.cut(ann)
        await world.advance(.seconds(1))
        #expect(todo.stream.status.pendingCount == 1)
        world.heal()
        try await world.settle()
        #expect(world.log("todo").count == 1)
    }

    // MARK: Time

    @Test("a token is renewed in virtual time, and the node knows the user") func renewal() async throws {
        let calls = Counter()
        let ann = try world.device("ann", user: "ann@example.com") {
            calls.add()
            return TestWorld.token(for: "ann@example.com")
        }
        let todo = try await open(ann)
        try await todo.insert(TodoTask(id: "1", title: "Milk"))
        try await world.settle()
        #expect(calls.count == 1)
        #expect(world.log("todo").first?.user == "ann@example.com")
        await world.advance(.seconds(3_600))
        #expect(calls.count == 2)
        try await world.settle()
    }

    @Test("a call of `renewToken` that never returns does not stop the time") func stuckRenewal() async throws {
        let ann = try world.device("ann", user: "ann") {
            try await Swift.Task.sleep(for: .seconds(3_600))
            return ""
        }
        _ = try await open(ann)
        await world.advance(.seconds(40))
        #expect(ann.client.status.problems.contains { $0.code == .noToken })
    }

    @MainActor
    @Test("code that waits for the node returns while the world settles, with its error too") func during() async throws
    {
        let ann = try world.device("ann")
        let todo = try await open(ann)
        let outcome = try await world.settle { try await todo.insert(TodoTask(id: "1", title: "Milk")).outcome() }
        guard case .applied = outcome else { throw NeverCame(description: "not applied") }
        await #expect(throws: CancellationError.self) { try await world.settle { throw CancellationError() } }
        try world.refuse(.writes, with: .forbidden)
        let error = await #expect(throws: NotSettled.self) {
            try await world.settle { try await todo.insert(TodoTask(id: "2", title: "Bread")).outcome() }
        }
        #expect(error?.missing.count == 1)
    }

    @Test("the deadline of a call on a device whose network is cut comes while the world settles")
    func deadline() async throws {
        let (ann, bob) = (try world.device("ann"), try world.device("bob"))
        let (todo, other) = (try await open(ann), try await open(bob))
        try await world.settle()
        world.cut(ann)
        try await todo.insert(TodoTask(id: "1", title: "Milk"))
        let before = world.now
        let client = ann.client
        await #expect(throws: FlushTimeout.self) {
            try await world.settle { try await todo.stream.flush(deadline: .seconds(40)) }
        }
        #expect(.seconds(40)..<(.seconds(41)) ~= world.now - before)
        let report = try await world.settle { try await client.syncOnce(deadline: .seconds(20)) }
        #expect(!report.isComplete && .seconds(60)..<(.seconds(62)) ~= world.now - before)
        #expect(other.stream.status.isUpToDate)
    }

    @Test("`settle` names the devices whose network is cut") func cutDevices() async throws {
        let (ann, bob) = (try world.device("ann"), try world.device("bob"))
        let (_, todo) = (try await open(ann), try await open(bob))
        try await world.settle()
        world.cut(ann)
        try world.refuse(.writes, with: .forbidden, of: bob)
        try await todo.insert(TodoTask(id: "1", title: "Milk"))
        let error = await #expect(throws: NotSettled.self) { try await world.settle(limit: .seconds(5)) }
        #expect(error?.cut == ["ann"] && error?.missing.count == 1)
        #expect(error?.description.contains("the network of ann is cut") == true)
    }

    @Test("time stands still outside of `advance` and `settle`") func standstill() async throws {
        let ann = try world.device("ann")
        let todo = try await open(ann)
        let write = try await todo.insert(TodoTask(id: "1", title: "Milk"))
        #expect(world.now == .zero && world.log("todo").isEmpty)
        try await world.settle()
        guard case .applied = try await write.outcome() else { throw NeverCame(description: "not applied") }
        let before = world.now
        await world.advance(.seconds(60))
        #expect(world.now == before + .seconds(60))
    }

    // MARK: Release

    @Test("a released world leaves no client, network or loop") func release() async throws {
        weak var loop: VirtualLoop?
        weak var network: TestNetwork?
        weak var client: SyncClient?
        do {
            let world = TestWorld(seed: 1)
            (loop, network) = (world.network.loop, world.network)
            let (ann, bob) = (try world.device("ann", user: "ann"), try world.device("bob"))
            client = ann.client
            let todo: Dataset = try await ann.client.open("todo", models: [TodoTask.self])
            _ = try await bob.client.open("todo", models: [TodoTask.self])
            try await todo.insert(TodoTask(id: "1", title: "Milk"))
            try await world.settle()
            // Messages and timers are still on their way.
            try await todo.update("1" as ModelID<TodoTask>) { $0.votes += 1 }
            bob.kill()
        }
        try await eventually { client == nil && network == nil && loop == nil }
    }

    @Test("a preview has its content, and confirms writes at once") func preview() async throws {
        let todo = try await TestWorld.preview([TodoTask.self]) { todo in
            try await todo.insert(TodoTask(id: "1", title: "Milk"))
        }
        #expect(try todo.objects(of: TodoTask.self).values.map(\.title) == ["Milk"])
        #expect(todo.stream.status.isUpToDate && todo.stream.status.pendingCount == 0)
        let write = try await todo.update("1" as ModelID<TodoTask>) { $0.isDone = true }
        guard case .applied = try await write.outcome() else { throw NeverCame(description: "not applied") }
    }

    @MainActor
    @Test("a preview can be made on the main actor") func previewOnMainActor() async throws {
        var titles: [String] = []
        let todo = try await TestWorld.preview([TodoTask.self]) { todo in
            titles.append("Milk")
            try await todo.insert(TodoTask(id: "1", title: titles[0]))
        }
        #expect(try todo.objects(of: TodoTask.self).values.count == 1)
    }
}

/// A number that any thread can increase.
private final class Counter: Sendable {
    private let number = Mutex(0)

    var count: Int { number.withLock { $0 } }
    func add() { number.withLock { $0 += 1 } }
}
