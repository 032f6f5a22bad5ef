import Reel
import ReelClient

/// A task of the list.
struct TodoTask: Model {
    let id: ID
    var title = ""
    var isDone = false

    init(id: ID) { self.id = id }

    static let schema = Schema<TodoTask>("task") {
        Field("title", \.title)
        Field("done", \.isDone)
    }
}

/// The list of tasks in the stream `todo`.
struct TodoList {
    let tasks: Dataset

    init(_ client: SyncClient) async throws {
        tasks = try await client.open("todo", models: [TodoTask.self])
    }

    /// Adds a task, and returns its id. The task is then durable on this device.
    func add(_ title: String) async throws -> String {
        var task = TodoTask(id: .random())
        task.title = title
        try await tasks.insert(task)
        return task.id.text
    }

    func finish(_ id: String) async throws {
        try await tasks.update(TodoTask.ID(id)) { $0.isDone = true }
    }

    /// All tasks, those to be done first.
    var rows: Query<TodoTask> { tasks.query(TodoTask.self).sort(by: \.isDone).sort(by: \.title) }
}
