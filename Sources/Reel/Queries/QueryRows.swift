internal import ReelClient
public import ReelCore
internal import Synchronization

/// The rows of a query at one moment of the stream, in the order of the query.
///
///     List(rows) { task in
///         Text(task.title).opacity(rows.pending.contains(task.id) ? 0.5 : 1)
///     }
public struct QueryRows<M: Model>: Sendable {
    let objects: [LoadedObject]
    let moment: QueryMoment
    /// The ids of the rows that wait; nil: no object of the model waits.
    private let pendingIDs: PendingIDs<M>?
    /// The changes since the rows before; nil: there were none.
    private let laterChanges: QueryChanges?

    /// Creates the rows of one moment.
    ///
    /// - Parameters:
    ///   - objects: the objects of the rows.
    ///   - moment: their moment.
    ///   - changes: the changes since the rows before; nil: there were none.
    init(_ objects: [LoadedObject], _ moment: QueryMoment, changes: QueryChanges? = nil) {
        (self.objects, self.moment, laterChanges) = (objects, moment, changes)
        pendingIDs = moment.hasPending ? PendingIDs(objects) : nil
    }

    /// The ids of the rows that show an own event which is not confirmed yet: it waits in the queue, and this device
    /// has not read it back from the stream. When it is confirmed, the row is one of the `updates` of `changes`, also
    /// if its value stays the same.
    ///
    /// An object that such an event has deleted is no row: see `Dataset.isPending`.
    public var pending: Set<ModelID<M>> { pendingIDs?.ids ?? [] }

    /// The objects that the model cannot read, sorted by the bytes of their ids. They are no rows, and they stay in the
    /// stream as they are.
    public var problems: [ModelProblem] { moment.problems }
    /// True if the whole stream has arrived on this device. An object that is absent then does not exist.
    public var isComplete: Bool { moment.isComplete }
    /// The seq up to which the stream was folded when the rows were read. Own events that wait are part of the rows.
    public var seq: Seq { moment.seq }
    /// The changes since the rows that the reader of `Query.values` got before. All rows are insertions in the first
    /// element, and in the result of a single read.
    public var changes: QueryChanges { laterChanges ?? QueryChanges(insertions: Array(objects.indices)) }
    /// The values of the rows.
    public var values: [M] { objects.map { $0.value(M.self) } }
}

extension QueryRows: RandomAccessCollection {
    /// The offset of the first row.
    public var startIndex: Int { 0 }
    /// The number of rows.
    public var endIndex: Int { objects.count }
    /// The row at an offset.
    public subscript(offset: Int) -> M { objects[offset].value(M.self) }
}

/// The ids of the rows that wait. They are collected when they are first asked for, because many readers never ask.
private final class PendingIDs<M: Model>: Sendable {
    private let objects: [LoadedObject]
    private let found = Mutex<Set<ModelID<M>>?>(nil)

    init(_ objects: [LoadedObject]) { self.objects = objects }

    var ids: Set<ModelID<M>> {
        found.withLock { found in
            if let found { return found }
            let ids = Set(objects.lazy.filter(\.isPending).map { ModelID<M>($0.key.text) })
            found = ids
            return ids
        }
    }
}
