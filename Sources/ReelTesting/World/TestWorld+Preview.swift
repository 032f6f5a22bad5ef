public import Reel

extension TestWorld {
    /// Returns the objects of a stream with content, for a preview. The content is the same at each start of the
    /// preview, and writes of the preview are confirmed at once.
    ///
    ///     let todo = try await TestWorld.preview([TodoTask.self]) { todo in
    ///         try await todo.insert(milk)
    ///     }
    ///
    /// The world stays as long as the returned dataset. Its messages take no time. Its virtual time stands still, so no
    /// timer fires.
    ///
    /// - Parameters:
    ///   - models: the models of the objects.
    ///   - body: writes the content.
    /// - Throws: The error of `body`. `SchemaError` with all faults of the schemas. `NotSettled` if the node refuses
    ///   the content.
    nonisolated(nonsending) public static func preview(
        _ models: [any Model.Type],
        _ body: (Dataset) async throws -> Void
    ) async throws -> Dataset {
        let world = TestWorld(seed: 1, delaysMs: 0...0)
        let client = try world.device("preview").client
        let dataset = try await client.open("preview", models: models)
        try await body(dataset)
        try await world.settle()
        return dataset
    }
}
