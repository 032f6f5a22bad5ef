import Reel
import ReelClient
import ReelCore

#if canImport(Glibc)
import Glibc
#endif

/// A todo list on Reel. Every device that runs it shows the same list, with and without a network.
///
///     swift run example-todo --node http://127.0.0.1:7350 --store ~/todo.reel add "Buy milk"
///     swift run example-todo --node http://127.0.0.1:7350 --store ~/todo.reel watch
@main
struct Todo {
    static let usage = """
        usage: example-todo [--node URL]... [--store FILE] COMMAND
          add TITLE   adds a task; if no node can be reached, it waits in the store
          done ID     marks a task as done
          list        shows the tasks of this device; "(waits)" means not confirmed by a node
          watch       shows the list again after each change
          feed        adds each line of standard input, and prints its id once it is durable

        """

    /// An error, as one line for the user.
    struct Failure: Error {
        var text: String
    }

    static func main() async {
        do {
            try await run(Array(CommandLine.arguments.dropFirst()))
        } catch let failure as Failure {
            end(failure.text)
        } catch {
            end("\(error)")
        }
    }

    static func run(_ arguments: [String]) async throws {
        var nodes: [String] = []
        var store = SyncClient.Store.memory
        var words = arguments
        if words == ["--help"] {
            print(usage, terminator: "")
            return
        }
        while words.count >= 2, words[0].hasPrefix("--") {
            switch words[0] {
            case "--node": nodes.append(words[1])
            case "--store": store = .file(words[1])
            default: end("found \(words[0]), expected --node or --store\n\(usage)", code: 2)
            }
            words.removeFirst(2)
        }
        let client = try SyncClient(nodes: nodes, store: store)
        let notices = await client.notices()
        let todo = try await TodoList(client)
        let stream = todo.tasks.stream
        // If a node answers within a moment, the list has what other devices have done.
        if !nodes.isEmpty { _ = try? await client.syncOnce(deadline: .seconds(1)) }
        switch (words.first, words.dropFirst().first) {
        case ("add", let title?): print(try await todo.add(title))
        case ("done", let id?):
            do {
                try await todo.finish(id)
            } catch let error as ReelError where error.code == .noObject || error.code == .deleted {
                throw Failure(text: "found no task \(id) here")
            }
        case ("list", nil): show(try todo.rows.rows())
        case ("watch", nil):
            if !nodes.isEmpty, client.status.connectedNode == nil { say("no node answers yet; trying again") }
            for try await rows in todo.rows.values { show(rows) }
        case ("feed", nil):
            while let title = readLine() {
                print(try await todo.add(title))
                fflush(nil)
            }
        default: end("found `\(words.joined(separator: " "))`, expected a command\n\(usage)", code: 2)
        }
        // New events get a moment to reach a node. The others wait in the store for the next run.
        if !nodes.isEmpty { await moment { await isDone(client, stream) } }
        let (isConnected, waiting) = (client.status.connectedNode != nil, stream.status.pendingCount)
        await client.close()
        if !nodes.isEmpty, !isConnected { await say(whyNot: notices) }
        if waiting > 0, case .memory = store { end("without --store the tasks that no node has are lost") }
    }

    static func show(_ rows: QueryRows<TodoTask>) {
        for task in rows {
            print(task.isDone ? "[x]" : "[ ]", task.id, task.title + (rows.pending.contains(task.id) ? " (waits)" : ""))
        }
        print("--")
        fflush(nil)
    }

    /// Returns true if a node is connected and has confirmed all own events.
    static func isDone(_ client: SyncClient, _ todo: SyncStream) async -> Bool {
        guard client.status.connectedNode != nil else { return false }
        return todo.status.pendingCount == 0
    }

    /// Waits until the condition is true, for at most about a second.
    static func moment(until isSo: () async -> Bool) async {
        for _ in 0..<50 {
            if await isSo() { return }
            try? await Task.sleep(for: .milliseconds(20))
        }
    }

    /// Prints the reasons why no node was reached. Call it after the client was closed, so that its notices end.
    static func say(whyNot notices: SyncNotices) async {
        var reasons: [String] = []
        for await case .disconnected(let node, let reason) in notices where !reasons.contains("\(node): \(reason)") {
            reasons.append("\(node): \(reason)")
        }
        say("no node answered: this is the copy of the device. \(reasons.joined(separator: ", "))")
    }

    static func say(_ text: String) {
        complain("example-todo: \(text)\n")
    }

    static func complain(_ text: String) {
        let bytes = Array(text.utf8)
        _ = write(STDERR_FILENO, bytes, bytes.count)
    }

    static func end(_ text: String, code: Int32 = 1) -> Never {
        if code == 2 { complain(text) } else { say(text) }
        exit(code)
    }
}
