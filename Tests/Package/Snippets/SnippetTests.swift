import Reel
import ReelClient
import ReelCore
import ReelTesting
import Testing

/// Runs the code of the guides as it is in an app whose code is isolated to the main actor unless it says otherwise.
@Suite(.timeLimit(.minutes(5))) struct SnippetTests {
    @Test("the code of the guide of typed models does what the guide says") func models() async throws {
        MainActor.assertIsolated()
        let todo = try await TestWorld.preview([ModelsPage.Item.self, ModelsPage.ItemList.self]) { _ in }
        var (milk, bread) = (ModelsPage.Item(id: "milk"), ModelsPage.Item(id: "bread"))
        (milk.title, bread.rank) = ("Milk", Rank.between(.middle, nil))
        try await todo.insert(bread)
        var edited = milk
        edited.note = "2 l"
        var shop = ModelsPage.ItemList(id: "shop")
        shop.name = "Shop"
        try await ModelsPage.write(todo, milk, bread, edited, shop)
        #expect(try todo.object(milk.id)?.votes == 1 && todo.object(milk.id)?.note == "2 l")
        #expect(try todo.object(milk.id)?.list == Ref(shop) && todo.object(bread.id) == nil)
        try await todo.stream.flush(deadline: .seconds(60))
        guard case .applied = try await ModelsPage.writeIf(todo, milk) else { throw ReelError(.internal, "rejected") }
        let form = ModelsPage.Editor()
        form.title = "Rice milk"
        try await form.rename(milk.id, in: todo)
        #expect(try todo.object(milk.id)?.title == "Rice milk")
        let token = try await todo.changes(since: nil).token
        var shown: [[String]] = []
        let reader = Task {
            _ = try await ModelsPage.read(todo, milk, shop) { rows, _ in shown.append(rows.map(\.title)) }
        }
        try await eventually { shown == [["Rice milk"]] }
        let editor = Task { try await ModelsPage.edit(todo, milk) { _, _ in } }
        try await eventually { try todo.object(milk.id)?.note == "Fresh 2 l" }
        editor.cancel()
        let (list, orphans) = try await ModelsPage.relate(todo, shop)
        #expect(try list?.name == "Shop" && orphans.values.isEmpty && todo.object(milk.id) == nil)
        var kinds: [ObjectChange.Kind] = []
        try await ModelsPage.follow(todo, token) { kind, _, _ in kinds.append(kind) }
        #expect(kinds == [.deleted])
        reader.cancel()
        _ = await reader.result
    }

    @Test("closures of writes use local variables and members of models") func closures() async throws {
        let todo = try await TestWorld.preview([Note.self]) { _ in }
        var note = Note(id: "1")
        note.title = "long"
        var ids: [Note.ID] = []
        try await todo.batch { batch in
            for title in ["a", "b"] {
                note.title += title
                let other = Note(id: .random(), title: note.title)
                try batch.insert(other)
                ids.append(other.id)
            }
        }
        #expect(ids.count == 2 && note.title == "longab")
        let query = todo.query(Note.self).filter { $0.isLong && Note.isPrice($0.price) }.sort(by: \.title)
        #expect(try query.rows().map(\.title) == ["longa", "longab"])
        #expect(try todo.query(Note.self).observed().rows.count == 2)
    }

    @Test("the code of the tutorial does what the tutorial says") func tutorial() async throws {
        let todo = try await TestWorld.preview([ModelsPage.TodoTask.self]) { _ in }
        var milk = ModelsPage.TodoTask(id: .random())
        milk.title = "Milk"
        try await todo.insert(milk)
        try await ModelsPage.change(todo, milk)
        try await ModelsPage.learn(todo, milk)
        let task = try todo.object(milk.id)
        #expect(task?.votes == 1 && task?.tags == ["shop"] && task?.isDone == true)
        let list = Task { try await ModelsPage.list(todo) }
        await todo.stream.client.close()
        await #expect(throws: ReelError.self) { try await list.value }
    }

    @Test("the code of the guide of the SDK does what the guide says") func sdk() async throws {
        let todo = try await TestWorld.preview([TodoTask.self]) { _ in }.stream
        let client = todo.client
        try await SDKPage.write(todo)
        try await SDKPage.draw(todo)
        try await SDKPage.toggle(todo)
        try await SDKPage.fill(todo)
        try await SDKPage.enqueue(todo)
        try await SDKPage.flush(client)
        #expect(try await SDKPage.read(todo) == ("Milk", false, 4))
        #expect(try SDKPage.readAtOneMoment(todo) == 5)
        #expect(try await SDKPage.steer(todo) == 0)
        try await SDKPage.compareAndSet(todo)
        #expect(try todo.object("task", id: "1")?["title"] == "Oat milk")
        try await todo.publish(.insert("page", id: "1", ["text": "a"]))
        try await SDKPage.edit(todo)
        #expect(try todo.object("page", id: "1")?["text"] == "a and more")
        try await SDKPage.replace(todo)
        #expect(try todo.object("task", id: "1")?.fields.names == ["done", "title"])
        #expect(await SDKPage.close(client).node != nil)
    }

    @Test("the code of the guide of tests does what the guide says") func testing() async throws {
        try await TestingPage.run()
        #expect(try await TestingPage.preview().objects(of: TodoTask.self).values.map(\.title) == ["Milk"])
    }
}

/// Waits until a condition is true, for at most a minute.
func eventually(_ condition: () throws -> Bool) async throws {
    for _ in 0..<6_000 where try !condition() { try await Task.sleep(for: .milliseconds(10)) }
    #expect(try condition())
}

struct Note: Model {
    let id: ID
    var title = ""
    var price = Money()

    init(id: ID) { self.id = id }

    static let schema = Schema<Note>("note") {
        Field("title", \.title)
        Field("price", \.price)
    }
}

// The members of an extension of a model are not isolated either.
extension Note {
    init(id: ID, title: String) {
        self.init(id: id)
        self.title = title
    }

    var isLong: Bool { title.count > 3 }

    static func isPrice(_ money: Money) -> Bool { money.cents >= 0 }
}

nonisolated struct Money {
    var cents = 0
}

nonisolated extension Money: FieldValue {
    init?(json: JSONValue) throws(FieldValueError) {
        guard let number = json.number else { return nil }
        cents = Int(number)
    }

    func json() throws(FieldValueError) -> JSONValue { JSONValue(cents) }
}
