import Reel

/// A model with the kinds of fields that merge.
struct Task: Model, Equatable {
    let id: ModelID<Task>
    var title = ""
    var isDone = false
    var votes = 0
    var tags: Set<String> = []
    var note = ""

    init(id: ModelID<Task>) { self.id = id }

    init(id: ModelID<Task>, title: String) {
        self.id = id
        self.title = title
    }

    static let schema = Schema<Task>("task") {
        Field("title", \.title)
        Field("done", \.isDone)
        Counter("votes", \.votes)
        MergedSet("tags", \.tags)
        Text("note", \.note)
    }
}
