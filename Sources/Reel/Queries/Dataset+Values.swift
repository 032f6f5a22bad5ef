internal import ReelClient

extension Dataset {
    /// The results of a closure that reads objects of one moment, of any models: the present result at once, and then
    /// the newest one after each change of a model that the closure has read, and of `isComplete`.
    ///
    ///     let counts = todo.values { moment in
    ///         (open: try moment.rows(of: open).count, lists: try moment.objects(of: TaskList.self).values.count)
    ///     }
    ///     for try await (open, lists) in counts { show(open, lists) }
    ///
    /// Each change runs the whole closure again, also if the result stays the same. `objects` and `rows` read and
    /// decode all objects of their model, which takes about ten microseconds for each. For the rows of one model, which
    /// follow the changes at the cost of the changed objects, use `Query.values`.
    ///
    /// Changes that come while the closure runs, or before the reader asks, make one run. The closure runs on the
    /// thread of its loop and delays nothing else.
    ///
    /// - Parameter body: reads objects. Only what it reads before it returns decides when it runs again, so it must not
    ///   return the moment itself. If it throws, the sequence ends with the error.
    public func values<Value: Sendable>(
        _ body: @escaping @Sendable (DatasetSnapshot) throws -> Value
    ) -> QuerySequence<Value> {
        // The sequence does not hold the client, so it does not hold the dataset.
        QuerySequence { [content = stream.content, models] in try SnapshotReader(content, models, body) }
    }
}
