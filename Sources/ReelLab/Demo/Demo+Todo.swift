import ReelClient
import ReelCore

extension Demo {
    /// Lets two people keep one list: inserts, a change, a delete.
    func todoList(_ ann: DemoDevice, _ bob: DemoDevice) async throws {
        screen.chapter("A todo list")
        let annsList = try await ann.client.open(todo)
        let bobsList = try await bob.client.open(todo)
        var last: Seq = 0
        for (list, id, title) in [(annsList, "1", "Milk"), (bobsList, "2", "Bread"), (annsList, "3", "A new lamp")] {
            last =
                try await list.publish(.insert("task", id: id, ["title": .string(title), "done": false])).acked() ?? 0
        }
        try await settle([annsList, bobsList], to: last)
        async let done = bobsList.publish(.update("task", id: "1", ["done": true])).acked()
        async let gone = annsList.publish(.delete("task", id: "3")).acked()
        try await settle([annsList, bobsList], to: max(try await done ?? 0, try await gone ?? 0))
        let lists = [try text(annsList), try text(bobsList)]
        screen.say("ann and bob see: \(lists[0])")
        screen.check(
            lists[0] == lists[1] && lists[0] == "[x] Milk, [ ] Bread",
            "bob's tick and ann's delete are on both"
        )
    }

    private func text(_ list: SyncStream) throws -> String {
        try list.confirmed.objects("task").map { task in
            (task["done"]?.bool == true ? "[x] " : "[ ] ") + (task["title"]?.string ?? "?")
        }.joined(separator: ", ")
    }
}
