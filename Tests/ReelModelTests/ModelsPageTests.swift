import Foundation
import ReelCore
import Synchronization
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import Reel
@testable import ReelClient

/// The pages about typed models describe the actual behavior.
@Suite(.timeLimit(.minutes(5))) struct ModelsPageTests {
    @Test(
        "each line of Swift on the page is compiled here",
        arguments: ["docs/guides/models.md", "docs/tutorials/first-app.md"]
    )
    func eachLineOfSwift(page: String) throws {
        let code = try PageCode(of: page, in: "Tests/ReelModelTests/ModelsPage.swift")
        #expect(code.missing.isEmpty && code.lines.count > 20)
    }

    @Test("the code of the guide does what the guide says") func guide() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let todo = try await client.open("s", models: [ModelsPage.Item.self, ModelsPage.ItemList.self])
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
        #expect(try await ModelsPage.writeIf(todo, milk).isApplied)
        let form = ModelsPage.Editor()
        await MainActor.run { form.title = "Rice milk" }
        try await form.rename(milk.id, in: todo)
        #expect(try todo.object(milk.id)?.title == "Rice milk")
        let token = try await todo.changes(since: nil).token
        let reader = Task { [milk, shop] in
            try await ModelsPage.read(todo, milk, shop) { _, _ in }
        }
        try await eventually { try todo.query(ModelsPage.Item.self).count() == 1 }
        let rows = try todo.query(ModelsPage.Item.self).rows()
        var titles: [String] = []
        let waits = try ModelsPage.wait(todo, rows, bread) { title, _ in titles.append(title) }
        #expect(titles == ["Rice milk"] && !waits)
        let (best, all, chosen) = try ModelsPage.sort(todo, "milk")
        #expect(best.map(\.title) == ["Rice milk"] && all.problems.isEmpty && chosen?.id == all.values.first?.id)
        let shown = Mutex<[String]>([])
        let combined = Task { [milk] in
            try await ModelsPage.combine(todo, todo.query(ModelsPage.Item.self), milk) { text, _ in
                shown.withLock { $0.append(text) }
            }
        }
        try await eventually { shown.withLock { $0 } == ["Shop: Rice milk"] }
        combined.cancel()
        let (lists, count) = try await combined.value
        #expect(lists.map(\.name) == ["Shop"] && count == 1)
        let editor = Task { [milk] in try await ModelsPage.edit(todo, milk) { _, _ in } }
        try await eventually { try todo.object(milk.id)?.note == "Fresh 2 l" }
        editor.cancel()
        let seen = Task { try await ModelsPage.relate(todo, shop) }
        let (list, orphans) = try await seen.value
        #expect(list?.name == "Shop" && orphans.values.isEmpty)
        #expect(try todo.object(milk.id) == nil)
        var kinds: [ObjectChange.Kind] = []
        try await ModelsPage.follow(todo, token) { kind, _, _ in kinds.append(kind) }
        #expect(kinds == [.deleted])
        reader.cancel()
        _ = try? await reader.value
        await client.close()
    }
}
