import Reel
import ReelClient

/// A model with every kind of field.
struct Job: Model, Equatable {
    let id: ID
    var createdAt = Timestamp(ms: 0)
    var title = ""
    var isDone = false
    var priority = 1.5
    var label = Label.none
    var due: Timestamp?
    var steps: [String] = []
    var votes = 0
    var tags: Set<String> = []
    var note = ""
    var data: [UInt8] = []
    var list: Ref<JobList>?
    var rank = Rank.middle
    /// Not in the schema.
    var isExpanded = false

    init(id: ID) { self.id = id }

    static let schema = Schema<Job>("job") {
        Constant("createdAt", \.createdAt)
        Field("title", \.title)
        Field("done", \.isDone, formerly: "completed")
        Field("priority", \.priority)
        Field("label", \.label)
        Field("due", \.due, formerly: "deadline")
        Field("steps", \.steps)
        Counter("votes", \.votes, formerly: "likes")
        MergedSet("tags", \.tags, formerly: "words")
        Text("note", \.note, formerly: "text")
        Bytes("data", \.data)
        Reference("list", \.list)
        Order("rank", \.rank)
    }
}

enum Label: String, FieldValue, CaseIterable { case none, urgent, later }

struct JobList: Model, Equatable {
    let id: ID
    var name = ""

    init(id: ID) { self.id = id }

    static let schema = Schema<JobList>("list") { Field("name", \.name) }
}

/// The name that SwiftUI has too: the kinds of fields must not make it ambiguous.
func text() -> Text { Text() }
struct Text {}
