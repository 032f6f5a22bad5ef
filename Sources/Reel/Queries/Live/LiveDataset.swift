internal import ReelClient
internal import ReelCore
internal import Synchronization

/// The decoded objects that the running queries of a dataset share, all of one moment of the stream.
///
/// It has no task. A reader that waits is resumed when the stream has changed, and then brings the objects up to date.
/// So no work is done for a reader that does not ask. The queries hold their model and the model holds this
/// object, which therefore ends with the last query. It does not hold the client.
///
/// A lock guards the state of this object, its models and their indexes. No filter of an app runs under it. Decoding
/// does, and so do reads and comparisons of properties.
final class LiveDataset: @unchecked Sendable {
    private struct Reference {
        weak var model: (any LiveObjects)?
    }

    let observation: StreamObservation
    private let lock = QueryLock()
    private var models: [ObjectIdentifier: Reference] = [:]
    private(set) var isComplete = false
    private(set) var seq = Seq.none

    init(_ stream: StreamContent) throws(ReelError) { observation = try StreamObservation(stream) }

    /// Calls `body` at the present moment of the stream, with a model. The model is made if there is none.
    func read<M: Model, T: Sendable>(_ schema: Schema<M>, _ body: (LiveModel<M>) throws -> T) throws -> T {
        try locked {
            let model = self.model(of: M.self) ?? make(schema)
            try refresh()
            return try body(model)
        }
    }

    /// Calls `body` at the present moment of the stream.
    ///
    /// - Throws: The error of `body`. `closed` if the stream or the client is closed. A code that begins with `store_`
    ///   if the store failed.
    func read<T: Sendable>(_ body: () throws -> T) throws -> T {
        try locked {
            try refresh()
            return try body()
        }
    }

    /// Calls `body` as `read` does. Returns nil if no query of the model runs, and if a lock of a query is held by a
    /// call that has led to this one.
    func readIfRunning<M: Model, T: Sendable>(
        _ model: M.Type,
        _ body: (LiveModel<M>) throws -> T
    ) throws -> T? {
        if QueryLock.isHeld { return nil }
        return try locked {
            guard let model = self.model(of: M.self) else { return nil }
            try refresh()
            return try body(model)
        }
    }

    /// Calls `body` while no other thread changes the objects.
    func locked<T: Sendable>(_ body: () throws -> T) throws -> T { try lock.withLock(body) }

    private func model<M: Model>(of model: M.Type) -> LiveModel<M>? {
        models[ObjectIdentifier(M.self)]?.model as? LiveModel<M>
    }

    private func make<M: Model>(_ schema: Schema<M>) -> LiveModel<M> {
        let model = LiveModel(self, schema)
        models[ObjectIdentifier(M.self)] = Reference(model: model)
        return model
    }

    /// Brings all models to the present moment.
    private func refresh() throws {
        let models = self.models.values.compactMap { $0.model }
        try observation.read(always: models.contains { !$0.isLoaded }) { snapshot, changes in
            let names = changes.isReset ? nil : changes.objects
            for model in models { try model.update(snapshot, changed: names) }
            (isComplete, seq) = (snapshot.isComplete, snapshot.seq)
        }
    }
}

/// The decoded objects of one model.
protocol LiveObjects: AnyObject {
    /// True once the objects were read.
    var isLoaded: Bool { get }

    /// Reads what has changed.
    ///
    /// - Parameters:
    ///   - snapshot: the present moment.
    ///   - names: the objects of any model that may have changed; nil: all.
    /// - Throws: A code that begins with `store_` if the store failed. Then nothing has changed.
    func update(_ snapshot: StreamSnapshot, changed names: [ObjectName]?) throws
}

/// The live objects of a dataset, which exist while a query runs. It does not hold the client.
final class LiveDatasetReference: Sendable {
    private struct Reference {
        weak var dataset: LiveDataset?
    }

    private let stream: StreamContent
    private let reference = Mutex(Reference())

    init(_ stream: StreamContent) { self.stream = stream }

    /// The objects, if a query runs.
    var present: LiveDataset? { reference.withLock { $0.dataset } }

    /// Returns the objects, which are made if no query runs.
    ///
    /// - Throws: `closed` if the stream or the client is closed.
    func make() throws(ReelError) -> LiveDataset {
        try reference.withLock { reference throws(ReelError) in
            if let dataset = reference.dataset { return dataset }
            let dataset = try LiveDataset(stream)
            reference.dataset = dataset
            return dataset
        }
    }
}
