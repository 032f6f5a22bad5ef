import Reel

/// A folder in a tree. Concurrent moves can make cycles.
struct Folder: Model, Equatable {
    let id: Reel.ID<Folder>
    var parent: Ref<Folder>?

    init(id: Reel.ID<Folder>) { self.id = id }

    init(_ id: Reel.ID<Folder>, in parent: Reel.ID<Folder>?) {
        (self.id, self.parent) = (id, parent.map { Ref($0) })
    }

    static let schema = Schema<Folder>("folder") { Reference("parent", \.parent, formerly: "above") }
}

/// An item in a folder, with references to another item and to many tags.
struct Item: Model, Equatable {
    let id: Reel.ID<Item>
    var folder: Ref<Folder>?
    var origin: Ref<Item>?
    var tags: Set<Ref<Tag>> = []
    var votes = 0
    /// Not in the schema.
    var neighbor: Ref<Item>?
    var friends: Set<Ref<Item>> = []

    init(id: Reel.ID<Item>) { self.id = id }

    init(_ id: Reel.ID<Item>, in folder: Reel.ID<Folder>? = nil, from origin: Reel.ID<Item>? = nil) {
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
    let id: Reel.ID<Tag>
    var name = ""

    init(id: Reel.ID<Tag>) { self.id = id }

    static let schema = Schema<Tag>("tag") { Field("name", \.name) }
}
