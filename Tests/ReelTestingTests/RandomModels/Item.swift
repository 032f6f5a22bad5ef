import Reel
import Synchronization
import TestSupport

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

/// The properties that a build has in its schema.
struct Shape<B: Build>: Sendable {
    let properties: [NamedProperty<B>]
    let schema: Schema<Item<B>>

    init(_ properties: [NamedProperty<B>]) {
        self.properties = properties
        schema = Schema("item") {
            return properties.flatMap { $0.property.field($0.name, $0.formerly) }
        }
    }

    /// Chooses most of all properties.
    ///
    /// - Parameters:
    ///   - renamed: the properties whose fields have another name in the old build. Most newer builds know that name.
    ///   - random: the generator of the choice.
    init(renamed: Set<String>, _ random: inout SeededNumbers) {
        var chosen: [NamedProperty<B>] = []
        for choices in Property<B>.all where !random.oneIn(8) {
            let property = random.pick(choices)
            let (old, new) = (property.name + " before", property.name)
            let isRenamed = renamed.contains(new)
            let formerly = isRenamed && !B.isOld && !random.oneIn(4) ? old : nil
            chosen.append(NamedProperty(property: property, name: isRenamed && B.isOld ? old : new, formerly: formerly))
        }
        self.init(chosen.shuffled(using: &random))
    }

    /// All names of fields that the build knows.
    var names: Set<String> { Set(properties.map(\.name) + properties.compactMap(\.formerly)) }
}

/// A property under the names that one schema gives to its field.
struct NamedProperty<B: Build>: Sendable {
    let property: Property<B>
    let name: String
    let formerly: String?

    /// Returns the stored value that the property reads; nil: there is none.
    func stored<Value>(in fields: [String: Value]) -> Value? { fields[name] ?? formerly.flatMap { fields[$0] } }
}
