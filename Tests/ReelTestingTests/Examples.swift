import Reel

/// A model with the kinds of fields that merge.
struct TodoTask: Model, Equatable {
    let id: ID
    var title = ""
    var isDone = false
    var votes = 0
    var tags: Set<String> = []
    var note = ""

    init(id: ID) { self.id = id }

    init(id: ID, title: String) {
        self.id = id
        self.title = title
    }

    static let schema = Schema<TodoTask>("task") {
        Field("title", \.title)
        Field("done", \.isDone)
        Counter("votes", \.votes)
        MergedSet("tags", \.tags)
        Text("note", \.note)
    }
}
