import Reel

/// A folder in a tree. Concurrent moves can make cycles.
struct Folder: Model, Equatable {
    let id: ID
    var parent: Ref<Folder>?

    init(id: ID) { self.id = id }

    init(_ id: ModelID<Folder>, in parent: ModelID<Folder>?) {
        (self.id, self.parent) = (id, parent.map { Ref($0) })
    }

    static let schema = Schema<Folder>("folder") { Reference("parent", \.parent, formerly: "above") }
}

/// An item in a folder, with references to another item and to many tags.
struct Item: Model, Equatable {
    let id: ID
    var folder: Ref<Folder>?
    var origin: Ref<Item>?
    var tags: Set<Ref<Tag>> = []
    var votes = 0
    /// Not in the schema.
    var neighbor: Ref<Item>?
    var friends: Set<Ref<Item>> = []

    init(id: ID) { self.id = id }

    init(_ id: ModelID<Item>, in folder: ModelID<Folder>? = nil, from origin: ModelID<Item>? = nil) {
        (self.id, self.folder, self.origin) = (id, folder.map { Ref($0) }, origin.map { Ref($0) })
    }

    static let schema = Schema<Item>("item") {
        Reference("folder", \.folder)
        Reference("origin", \.origin)
        MergedSet("tags", \.tags)
        Counter("votes", \.votes)
    }
}

struct Tag: Model, Equatable {
    let id: ID
    var name = ""

    init(id: ID) { self.id = id }

    static let schema = Schema<Tag>("tag") { Field("name", \.name) }
}
