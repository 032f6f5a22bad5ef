public import Observation
public import ReelClient
internal import Synchronization

/// The rows of a query for a user interface. It changes on the main actor, and ends when it is released.
///
///     struct TaskList: View {
///         @State var tasks: ObservedQuery<Task>
///         var body: some View { List(tasks.rows) { task in Text(task.title) } }
///     }
@MainActor @Observable public final class ObservedQuery<M: Model> {
    /// The present rows, with their problems, with the changes since the rows before, and with the rows that wait.
    public private(set) var rows: QueryRows<M>
    /// The status of the stream: what has arrived, and which own events wait.
    public private(set) var status: StreamStatus
    /// The error that has ended the query; nil while it runs. The last rows stay.
    public private(set) var error: (any Error)?

    /// True if the whole stream has arrived on this device.
    public var isComplete: Bool { rows.isComplete }
    /// The number of own events of the stream that wait, of any model. `rows.pending` has the rows that wait.
    public var pendingCount: Int { status.pendingCount }

    private let tasks = ObservationTasks()

    init(_ query: Query<M>) throws {
        let stream = query.dataset.stream
        let source = QuerySource(query)
        let reader = try RowsReader(source)
        // A new reader always has a first result.
        guard let rows = try reader.next() else { throw CancellationError() }
        (self.rows, status) = (rows, stream.status)
        // The sequence continues with the running query, which is held until it does.
        let (running, seen) = (reader.query, reader.seen)
        let changes = QuerySequence {
            try withExtendedLifetime(running) { try RowsReader(source, after: seen) }
        }
        tasks.add(
            Task { [weak self] in
                do {
                    for try await rows in changes { self?.rows = rows }
                } catch {
                    self?.error = error
                }
            }
        )
        tasks.add(
            Task { [weak self, statuses = stream.statuses()] in
                for await status in statuses { self?.status = status }
            }
        )
    }
}

/// The tasks of an observed query, which are cancelled when it is released.
private final class ObservationTasks: Sendable {
    private let tasks = Mutex<[Task<Void, Never>]>([])

    func add(_ task: Task<Void, Never>) { tasks.withLock { $0.append(task) } }

    deinit {
        for task in tasks.withLock({ $0 }) { task.cancel() }
    }
}

extension Query {
    /// Returns the rows for a user interface, which change on the main actor.
    ///
    /// The first rows are read at once, so that the first frame shows them. That takes about ten microseconds for each
    /// object of the model if no query of the model runs yet. Later changes are read on other threads.
    ///
    /// - Throws: What `rows` throws.
    @MainActor public func observed() throws -> ObservedQuery<M> { try ObservedQuery(self) }
}
