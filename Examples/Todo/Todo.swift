import ReelClient

#if canImport(Glibc)
import Glibc
#endif

/// A todo list on Reel: every device that runs this shows the same list, with or without a network.
///
///     swift run example-todo --node http://127.0.0.1:7350 --store ~/todo.reel add "Buy milk"
///     swift run example-todo --node http://127.0.0.1:7350 --store ~/todo.reel watch
@main
struct Todo {
    static let usage = """
        usage: example-todo [--node URL]... [--store FILE] COMMAND
          add TITLE   puts a task on the list; without a node in reach it waits in the store
          done ID     marks a task as done
          list        shows what this device has read of it; what still waits in the store is not there yet
          watch       shows the list again whenever it changes
          feed        adds each line of standard input, and prints its id once it is safe in the store

        """

    static func main() async {
        do {
            try await run(Array(CommandLine.arguments.dropFirst()))
        } catch {
            print("example-todo: \(error)")
            exit(1)
        }
    }

    static func run(_ arguments: [String]) async throws {
        var nodes: [String] = []
        var store = SyncClient.Store.memory
        var words = arguments
        if words == ["--help"] { end(usage, code: 0) }
        while words.count >= 2, words[0].hasPrefix("--") {
            switch words[0] {
            case "--node": nodes.append(words[1])
            case "--store": store = .file(words[1])
            default: end(usage)
            }
            words.removeFirst(2)
        }
        let client = try SyncClient(nodes: nodes, store: store)
        let todo = try await client.open("todo")
        switch (words.first, words.dropFirst().first) {
        case ("add", let title?): print(try await add(title, to: todo))
        case ("done", let id?):
            if await todo.object("task", id) == nil { print("not read yet: if there is no such task, nothing changes") }
            try await todo.publish(.update("task", id, ["done": true]))
        case ("list", nil): show(await todo.objects("task"))
        case ("watch", nil):
            for await _ in await todo.changes { show(await todo.objects("task")) }
        case ("feed", nil):
            while let title = readLine() {
                print(try await add(title, to: todo))
                fflush(nil)
            }
        default: end(usage)
        }
        // Give what was just said a moment to reach a node; what does not waits in the store for the next time.
        for _ in 0..<50 where !nodes.isEmpty {
            guard await todo.queued > 0 else { break }
            try await Task.sleep(for: .milliseconds(20))
        }
        await client.close()
    }

    /// Returns the task's id once it is durable on this device.
    static func add(_ title: String, to todo: SyncStream) async throws -> String {
        let id = String(UInt64.random(in: .min ... .max), radix: 36)
        try await todo.publish(.insert("task", id, ["title": .string(title), "done": false]))
        return id
    }

    static func show(_ tasks: [SyncObject]) {
        for task in tasks {
            print(task["done"]?.bool == true ? "[x]" : "[ ]", task.name.id, task["title"]?.string ?? "")
        }
        print("--")
    }

    static func end(_ text: String, code: Int32 = 2) -> Never {
        print(text, terminator: "")
        exit(code)
    }
}
