internal import ReelClient
internal import ReelCore

/// Reads the results of a closure over the objects of one moment.
final class SnapshotReader<Element: Sendable>: LiveReader<Element> {
    private let models: [any Model.Type]
    private let body: @Sendable (DatasetSnapshot) throws -> Element
    /// The models that the last run has read; nil: there was none.
    private var reads: ModelReads?
    private var isComplete = false

    /// Begins the reading.
    ///
    /// - Parameters:
    ///   - content: the readable content of the stream.
    ///   - models: the models of the dataset.
    ///   - body: the closure.
    init(
        _ content: StreamContent,
        _ models: [any Model.Type],
        _ body: @escaping @Sendable (DatasetSnapshot) throws -> Element
    ) throws {
        (self.models, self.body) = (models, body)
        super.init(try StreamObservation(content))
    }

    override func read() throws -> Element? {
        var element: Element?
        try observation.read(always: false) { snapshot, changes in
            guard isDue(changes, snapshot) else { return }
            let reads = ModelReads()
            element = try body(DatasetSnapshot(snapshot, models, reads))
            (self.reads, isComplete) = (reads, snapshot.isComplete)
        }
        return element
    }

    private func isDue(_ changes: ContentChanges, _ snapshot: StreamSnapshot) -> Bool {
        guard let reads, !changes.isReset, snapshot.isComplete == isComplete else { return true }
        return changes.objects.contains { reads.contains($0.model) }
    }
}
