import Foundation
import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// The pages for app developers describe the actual behavior.
@Suite(.timeLimit(.minutes(5))) struct SDKPageTests {
    @Test("each line of Swift on the page is compiled here", arguments: ["README.md", "docs/guides/sdk.md"])
    func eachLineOfSwift(page: String) throws {
        let code = try PageCode(of: page, in: "Tests/ReelClientTests/SDKPage.swift")
        #expect(code.missing.isEmpty && code.lines.count > 3)
    }

    @Test("the examples on the SDK page behave as the page describes") func pageExamples() async throws {
        let network = try FakeNetwork()
        try await network.on { $0.down = ["a"] }
        let client = try network.client()
        let todo = try await client.open("todo")
        try await SDKPage.write(todo)
        let offline = try await SDKPage.read(todo)
        #expect(offline == ("Milk", true, 2))
        let before = try await SDKPage.readApart(todo)
        #expect(before.agreed == nil && before.waiting.count == 4)

        try await network.on { $0.down = [] }
        try await eventually { todo.status.pendingCount == 0 }
        let online = try await SDKPage.read(todo)
        #expect(online == ("Milk", false, 2))
        #expect(try await SDKPage.readApart(todo).agreed == todo.object("task", id: "1"))
        try await SDKPage.draw(todo)
        try await SDKPage.toggle(todo)
        try await SDKPage.fill(todo)
        #expect(try todo.object("task", id: "3")?.fields.names == ["count", "title"])
        #expect(try todo.object("task", id: "1")?["favourite"] == true)
        try await eventually { todo.status.pendingCount == 0 }
        #expect(try todo.objects("list").count == 1)
        #expect(try SDKPage.readAtOneMoment(todo) == 1 + todo.objects("task").count)
        #expect(try todo.object("task", id: "1")?["tags"] == ["shop"])
        try await SDKPage.enqueue(todo)
        try await SDKPage.flush(client)
        #expect(todo.status.pendingCount == 0)
        #expect(try await SDKPage.steer(todo) == 0)
        try await SDKPage.compareAndSet(todo)
        #expect(try todo.object("task", id: "1")?["title"] == "Oat milk")
        try await todo.publish(.insert("page", id: "1", ["text": "a"]))
        try await SDKPage.edit(todo)
        try await SDKPage.edit(todo)
        #expect(try todo.object("page", id: "1")?["text"] == "a and more and more")
        try await eventually { todo.status.pendingCount == 0 }
        #expect(try todo.confirmed.object("page", id: "1")?["text"] == "a and more and more")
        try await SDKPage.replace(todo)
        #expect(try todo.object("task", id: "1")?.fields.names == ["done", "title"])
        try await todo.flush(deadline: .seconds(300))
        try await SDKPage.leave(todo, of: client)
        #expect(try await client.streams() == [.init(id: "todo", pendingCount: 0)])
        let last = await SDKPage.close(client)
        #expect(last.node == "a" && last.traffic.eventsReceived > 0)
        await #expect(throws: ReelError.closed) { try await todo.publish(.insert("task", id: "9")) }
        let none = #expect(throws: (any Error).self) { try SDKPage.connect("a token") }
        #expect(none.map { "\($0)" }?.contains("authorities.pem") == true)
    }
}
