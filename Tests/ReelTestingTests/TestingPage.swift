import Reel
import ReelClient
import ReelCore
import ReelTesting
import Testing

/// The code of docs/guides/testing-apps.md.
enum TestingPage {
    static func run() async throws {
        let world = TestWorld(seed: 7)
        let ann = try world.device("ann"), bob = try world.device("bob")
        let todo = try await ann.client.open("todo", models: [TodoTask.self])
        let other = try await bob.client.open("todo", models: [TodoTask.self])

        var milk = TodoTask(id: "1")
        milk.title = "Milk"
        try await todo.insert(milk)
        try await world.settle()
        #expect(try other.object(milk.id)?.title == "Milk")

        world.cut(ann)
        try await todo.update(milk.id) { $0.votes += 1 }
        bob.kill()
        try bob.start()
        let again = try await bob.client.open("todo", models: [TodoTask.self])
        world.heal()
        try await world.settle()
        #expect(try again.object(milk.id)?.votes == 1)

        let write = try await todo.update(milk.id) { $0.isDone = true }
        try await world.settle()
        if case .rejected(let code, _) = try await write.outcome() { Issue.record("rejected: \(code)") }
        _ = try await world.settle { try await todo.insert(TodoTask(id: "2")).outcome() }
        await world.advance(.seconds(3_600))

        try world.refuse(.writes, with: .forbidden, of: ann)
        try await todo.update(milk.id) { $0.votes += 1 }
        await world.advance(.seconds(1))
        #expect(todo.stream.status.problems.map(\.code) == [.forbidden])
        world.heal(ann)
        try await world.settle()
        #expect(world.log("todo").allSatisfy { $0.outcome == .applied })
    }

    static func preview() async throws -> Dataset {
        var milk = TodoTask(id: "1")
        milk.title = "Milk"
        let preview = try await TestWorld.preview([TodoTask.self]) { try await $0.insert(milk) }
        return preview
    }
}
