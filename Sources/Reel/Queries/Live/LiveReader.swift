internal import ReelClient
internal import ReelCore

/// A query and its objects, without a hold on the client.
struct QuerySource<M: Model>: Sendable {
    let definition: QueryDefinition<M>
    let live: LiveDatasetReference
    let schema: Result<Schema<M>, SchemaError>

    init(_ query: Query<M>) {
        (definition, live) = (query.definition, query.dataset.live)
        schema = Result { () throws(SchemaError) in try query.dataset.schema(of: M.self) }
    }
}

/// The reading of results by one loop.
class LiveReader<Element: Sendable> {
    /// The changes of the stream.
    let observation: StreamObservation
    /// True if the loop has a result, which it keeps while the client repairs the stream.
    private var hasResult: Bool

    init(_ observation: StreamObservation, hasResult: Bool = false) {
        (self.observation, self.hasResult) = (observation, hasResult)
    }

    /// Returns the next result; nil if there is no news.
    final func next() throws -> Element? {
        do {
            let element = try read()
            hasResult = hasResult || element != nil
            return element
        } catch let error as ReelError where error.code == .storeDamaged && hasResult {
            // The client reads the stream again from a node.
            return nil
        }
    }

    /// Reads the next result; nil if there is no news. Subclasses override it.
    func read() throws -> Element? { nil }
}

/// Reads the rows of a query.
final class RowsReader<M: Model>: LiveReader<QueryRows<M>> {
    /// The last result that the loop has got.
    struct Seen: Sendable {
        fileprivate struct State: Sendable, Equatable {
            let version: Int
            let problems: Int
            let isComplete: Bool
        }

        fileprivate let state: State
        fileprivate let rows: [LoadedObject]
    }

    let query: LiveQuery<M>
    private(set) var seen: Seen?

    /// Starts the reading.
    ///
    /// - Parameters:
    ///   - source: the query, which starts to run if it does not yet.
    ///   - seen: what another reading of the running query has seen; nil: the first result comes at once.
    init(_ source: QuerySource<M>, after seen: Seen? = nil) throws {
        let (schema, dataset) = (try source.schema.get(), try source.live.make())
        query = try dataset.read(schema) { $0.query(source.definition) }
        self.seen = seen
        super.init(dataset.observation, hasResult: seen != nil)
    }

    override func read() throws -> QueryRows<M>? {
        let present = try query.present()
        let state = Seen.State(
            version: present.version,
            problems: present.problemsVersion,
            isComplete: present.moment.isComplete
        )
        if state == seen?.state {
            try query.prepare()
            return nil
        }
        let changes = QueryChanges(from: seen?.rows ?? [], to: present.rows)
        seen = Seen(state: state, rows: present.rows)
        return QueryRows(present.rows, present.moment, changes: changes)
    }
}

/// Reads the counts of a query.
final class CountsReader<M: Model, Group: Hashable & Sendable>: LiveReader<GroupCounts<Group>> {
    private let live: LiveCounts<M, Group>
    private var last: GroupCounts<Group>?

    init(_ source: QuerySource<M>, _ keyPath: any KeyPath<M, Group> & Sendable) throws {
        let (schema, dataset) = (try source.schema.get(), try source.live.make())
        live = try dataset.read(schema) { LiveCounts(source.definition.condition, keyPath, $0) }
        super.init(dataset.observation)
    }

    override func read() throws -> GroupCounts<Group>? {
        let counts = try live.present()
        if counts == last { return nil }
        last = counts
        return counts
    }
}
