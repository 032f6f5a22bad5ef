import Reel
import ReelClient

/// The code of docs/guides/models.md and of docs/tutorials/first-app.md. `ModelsPageTests` compares the lines.
enum ModelsPage {
    struct Item: Model {
        let id: ID
        var createdAt = Timestamp(ms: 0)
        var title = ""
        var isDone = false
        var label = Category.none
        var votes = 0
        var tags: Set<String> = []
        var note = ""
        var drawing: [UInt8] = []
        var price: Price?
        var list: Ref<ItemList>?
        var friends: Set<Ref<Item>> = []
        var rank = Rank.middle
        var isExpanded = false

        init(id: ID) { self.id = id }

        static let schema = Schema<Item>("item") {
            Constant("createdAt", \.createdAt)
            Field("title", \.title)
            Field("done", \.isDone, formerly: "completed")
            Field("label", \.label)
            Counter("votes", \.votes)
            MergedSet("tags", \.tags)
            Text("note", \.note)
            Bytes("drawing", \.drawing)
            Field("price", \.price)
            Reference("list", \.list)
            MergedSet("friends", \.friends)
            Order("rank", \.rank)
        }
    }

    enum Category: String, FieldValue {
        case none, home, work
    }

    struct Price: FieldValue {
        var cents = 0
        var currency = "EUR"

        init() {}

        init?(json: JSONValue) throws(FieldValueError) {
            let (cents, currency) = (json.object?["cents"]?.number, json.object?["currency"]?.string)
            guard let cents = cents.flatMap({ Int(exactly: $0) }), let currency else {
                throw FieldValueError(found: "\(json)", expected: "an object with cents and a currency")
            }
            (self.cents, self.currency) = (cents, currency)
        }

        func json() -> JSONValue { ["cents": JSONValue(cents), "currency": JSONValue(currency)] }
    }

    struct ItemList: Model {
        let id: ID
        var name = ""

        init(id: ID) { self.id = id }

        static let schema = Schema<ItemList>("list") { Field("name", \.name) }
    }

    struct TodoTask: Model {
        let id: ID
        var title = ""
        var isDone = false
        var votes = 0
        var tags: Set<String> = []

        init(id: ID) { self.id = id }

        static let schema = Schema<TodoTask>("task") {
            Field("title", \.title)
            Field("done", \.isDone)
            Counter("votes", \.votes)
            MergedSet("tags", \.tags)
        }
    }

    /// The task of a newer app.
    struct NewerTask: Model {
        let id: ID
        var isDone = false

        init(id: ID) { self.id = id }

        static let schema = Schema<NewerTask>("task") {
            Field("finished", \.isDone, formerly: "done")
        }
    }

    // MARK: The guide

    static func open() async throws -> (Dataset, Item) {
        let client = try SyncClient(nodes: ["http://127.0.0.1:7350"], store: .file("app.reel"))
        let todo = try await client.open("todo", models: [Item.self, ItemList.self])
        var milk = Item(id: .random())
        milk.title = "Milk"
        return (todo, milk)
    }

    static func write(_ todo: Dataset, _ milk: Item, _ bread: Item, _ edited: Item, _ shop: ItemList) async throws {
        try await todo.insert(milk)
        try await todo.update(milk.id) { $0.votes += 1 }
        try await todo.save(edited, changedFrom: milk)
        try await todo.batch { batch in
            try batch.insert(shop)
            try batch.update(milk.id) { $0.list = Ref(shop) }
        }
        try await todo.move(milk.id, between: nil, and: bread.id)
        try await todo.delete(bread.id)
    }

    static func importAll(_ todo: Dataset, _ items: [Item]) async throws {
        for start in stride(from: 0, to: items.count, by: 100) {
            try await todo.batch { batch in
                for item in items[start...].prefix(100) { try batch.replace(item) }
            }
        }
    }

    static func writeIf(_ todo: Dataset, _ milk: Item) async throws -> PublishOutcome {
        let write = try await todo.update(milk.id, if: .unchanged(\.title, since: milk)) { $0.title = "Oat milk" }
        let outcome = try await write.outcome()
        return outcome
    }

    static func read(
        _ todo: Dataset,
        _ milk: Item,
        _ shop: ItemList,
        show: (QueryRows<Item>, QueryChanges) -> Void
    ) async throws -> (Item?, QueryRows<Item>, GroupCounts<Category>, QueryPage<Item>) {
        let item = try todo.object(milk.id)
        let open = todo.query(Item.self).where(\.list, equals: Ref(shop)).filter { !$0.isDone }
        let query = open.sort(by: \.rank).limit(200)
        let rows = try query.rows()
        for try await rows in query.values { show(rows, rows.changes) }
        let counts = try todo.query(Item.self).count(groupedBy: \.label)
        var page = try query.page()
        while let next = page.next { page = try query.page(after: next) }
        return (item, rows, counts, page)
    }

    static func sort(_ todo: Dataset, _ text: String) throws -> (QueryRows<Item>, ModelObjects<Item>, Item?) {
        let best = try todo.query(Item.self).sort(by: \.votes, order: .descending).sort(by: \.title).rows()
        let all = try todo.objects(of: Item.self)
        let chosen = try todo.object(Item.ID(text))
        return (best, all, chosen)
    }

    static func wait(
        _ todo: Dataset,
        _ rows: QueryRows<Item>,
        _ bread: Item,
        show: (String, String) -> Void
    ) throws -> Bool {
        for item in rows { show(item.title, rows.pending.contains(item.id) ? "waits" : "") }
        let waits = try todo.isPending(bread.id)
        return waits
    }

    static func combine(
        _ todo: Dataset,
        _ query: Query<Item>,
        _ milk: Item,
        show: (String, String) -> Void
    ) async throws -> ([ItemList], Int) {
        let (lists, count) = try todo.read { moment in
            (try moment.objects(of: ItemList.self).values, try moment.rows(of: query).count)
        }
        let titles = todo.values { moment in
            let item = try moment.object(milk.id)
            let list = try item?.list.flatMap { try moment.resolve($0) }
            return "\(list?.name ?? "no list"): \(item?.title ?? "")"
        }
        for try await title in titles { show(title, "") }
        return (lists, count)
    }

    static func relate(_ todo: Dataset, _ shop: ItemList) async throws -> (ItemList?, Orphans<Item>) {
        let list = try todo.resolve(Ref<ItemList>(shop.id))
        try await todo.delete(shop.id, cascading: \Item.list)
        let orphans = try todo.orphans(of: \Item.list)
        try await todo.removeDeletedTargets(from: \Item.friends)
        return (list, orphans)
    }

    static func edit(_ todo: Dataset, _ milk: Item, show: (Range<Int>, String) -> Void) async throws {
        let draft = try todo.draft(of: milk.id, \.note)
        try draft.replace(utf16: 0..<0, with: "Fresh ")
        for await change in draft.remoteChanges { show(change.utf16, change.text) }
    }

    static func follow(
        _ todo: Dataset,
        _ token: ChangeToken?,
        replaceAll: ([Item]) -> Void = { _ in },
        apply: (ObjectChange.Kind, Item?, Item?) -> Void
    ) async throws {
        let changes = try await todo.changes(since: token)
        if changes.isReset { replaceAll(try changes.objects(of: Item.self).values) }
        for change in try changes.changes(of: Item.self) { apply(change.kind, change.old, change.value) }
    }

    /// A part of a user interface.
    @MainActor final class Editor {
        var title = ""

        func rename(_ id: Item.ID, in todo: Dataset) async throws {
            try await todo.update(id) { [title] in $0.title = title }
        }
    }

    // MARK: The tutorial

    static func begin() async throws -> (Dataset, TodoTask) {
        let words = CommandLine.arguments.dropFirst()
        let client = try SyncClient(nodes: ["http://127.0.0.1:7350"], store: .file(words.first ?? "todo.reel"))
        let todo = try await client.open("todo", models: [TodoTask.self])

        var milk = TodoTask(id: .random())
        milk.title = words.dropFirst().first ?? "Milk"
        try await todo.insert(milk)
        return (todo, milk)
    }

    static func change(_ todo: Dataset, _ milk: TodoTask) async throws {
        for task in try todo.objects(of: TodoTask.self).values { print(task.title, task.isDone, task.votes) }
        try await todo.update(milk.id) { task in
            task.votes += 1
            task.tags.insert("shop")
        }
        if let task = try todo.object(milk.id) { print(task.title, task.votes, task.tags) }
    }

    static func list(_ todo: Dataset) async throws {
        let open = todo.query(TodoTask.self).filter { !$0.isDone }.sort(by: \.title).limit(200)
        let list = Task {
            for try await rows in open.values {
                print("--", rows.isComplete ? "all of it" : "still loading")
                for task in rows {
                    print(task.title, task.votes, rows.pending.contains(task.id) ? "waits" : "confirmed")
                }
            }
        }
        try await list.value
    }

    static func learn(_ todo: Dataset, _ milk: TodoTask) async throws {
        try await todo.stream.flush(deadline: .seconds(10))
        let write = try await todo.update(milk.id, if: .unchanged(\.title, since: milk)) { $0.isDone = true }
        switch try await write.outcome() {
        case .applied(let seq): print("in the stream at \(seq)")
        case .rejected(let code, _): print("another device was first: \(code)")
        default: break
        }
    }
}
