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

/// The reading of a running query by one loop.
class LiveReader<Element: Sendable> {
    let dataset: LiveDataset

    init(_ dataset: LiveDataset) { self.dataset = dataset }

    /// Returns the present result; nil if it is the same as before.
    func next() throws -> Element? { nil }
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
    private let schema: Schema<M>
    private(set) var seen: Seen?

    /// Starts the reading.
    ///
    /// - Parameters:
    ///   - source: the query, which starts to run if it does not yet.
    ///   - seen: what another reading of the running query has seen; nil: the first result comes at once.
    init(_ source: QuerySource<M>, after seen: Seen? = nil) throws {
        (schema, self.seen) = (try source.schema.get(), seen)
        let dataset = try source.live.make()
        query = try dataset.read(schema) { $0.query(source.definition) }
        super.init(dataset)
    }

    override func next() throws -> QueryRows<M>? {
        let (query, before) = (query, seen?.state)
        let found: (Seen.State, QueryRows<M>)?
        do {
            found = try dataset.read(schema) { model in
                if let failure = query.failure { throw failure }
                let state = Seen.State(
                    version: query.version,
                    problems: model.problemsVersion,
                    isComplete: model.dataset.isComplete
                )
                if state != before { return (state, QueryRows(query.rows, model)) }
                // Before the first change, so that it costs no more than the others.
                query.prepare()
                return nil
            }
        } catch let error as ReelError where error.code == .storeDamaged && before != nil {
            // The client reads the stream again from a node.
            return nil
        }
        guard let (state, found) = found else { return nil }
        var rows = found
        rows.changes = QueryChanges(from: seen?.rows ?? [], to: rows.objects)
        seen = Seen(state: state, rows: rows.objects)
        return rows
    }
}

/// Reads the counts of a query.
final class CountsReader<M: Model, Group: Hashable & Sendable>: LiveReader<GroupCounts<Group>> {
    private let schema: Schema<M>
    private let live: LiveCounts<M, Group>
    private var last: (version: Int, counts: GroupCounts<Group>)?

    init(_ source: QuerySource<M>, _ keyPath: any KeyPath<M, Group> & Sendable) throws {
        schema = try source.schema.get()
        let dataset = try source.live.make()
        live = try dataset.read(schema) { LiveCounts(source.definition.condition, keyPath, $0) }
        super.init(dataset)
    }

    override func next() throws -> GroupCounts<Group>? {
        let (live, last) = (live, last)
        let found: (Int, GroupCounts<Group>)?
        do {
            found = try dataset.read(schema) { model in
                if let failure = live.failure { throw failure }
                let isComplete = model.dataset.isComplete
                if let last, last.version == live.version, last.counts.isComplete == isComplete { return nil }
                return (live.version, GroupCounts(counts: live.counts, isComplete: isComplete))
            }
        } catch let error as ReelError where error.code == .storeDamaged && last != nil {
            // The client reads the stream again from a node.
            return nil
        }
        guard let (version, counts) = found else { return nil }
        self.last = (version, counts)
        return counts == last?.counts ? nil : counts
    }
}
