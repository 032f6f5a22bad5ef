import Reel
import Synchronization

/// A model with every kind of field. Its schema is random, and another one in each build of the app.
struct Item<B: Build>: Model {
    let id: ID
    var createdAt = Timestamp(ms: 0)
    var author: String?
    var title = B.title
    var size = 0
    var isDone = false
    var priority = B.priority
    var label = Label.none
    var oldLabel = OldLabel.none
    var mood: Label?
    var oldMood: OldLabel?
    var due: Timestamp?
    var steps: [String] = []
    var votes = 0
    var tags: Set<String> = []
    var labels: Set<Label> = []
    var oldLabels: Set<OldLabel> = []
    var note = ""
    var data: [UInt8] = []
    var folder: Ref<Folder>?
    var folders: Set<Ref<Folder>> = []
    var rank = Rank.middle

    init(id: ID) { self.id = id }

    static var schema: Schema<Item<B>> { B.shape.withLock(\.schema) }
}

/// The cases that a newer build knows.
enum Label: String, Shown, CaseIterable { case none, urgent, later }

/// The cases that an older build knows.
enum OldLabel: String, Shown, CaseIterable { case none, urgent }

/// A model whose objects refer to each other, the same in each build.
struct Folder: Model, Equatable {
    let id: ID
    var name = ""
    var parent: Ref<Folder>?

    init(id: ID) { self.id = id }

    static let schema = Schema<Folder>("folder") {
        Field("name", \.name)
        Reference("parent", \.parent)
    }
}

/// A build of the app. Its schema changes from run to run, so that only one run at a time can use it.
protocol Build: Sendable {
    /// True for the build that has the old names of fields.
    static var isOld: Bool { get }
    static var title: String { get }
    static var priority: Double { get }
    static var shape: Mutex<Shape<Self>> { get }
}

enum OldBuild: Build {
    static let isOld = true
    static let title = ""
    static let priority = 0.0
    static let shape = Mutex(Shape<OldBuild>([]))
}

enum OtherBuild: Build {
    static let isOld = false
    static let title = "Untitled"
    static let priority = 1.5
    static let shape = Mutex(Shape<OtherBuild>([]))
}

enum NewBuild: Build {
    static let isOld = false
    static let title = "New"
    static let priority = -1e300
    static let shape = Mutex(Shape<NewBuild>([]))
}
