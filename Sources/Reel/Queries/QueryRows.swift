public import ReelCore

/// The rows of a query at one moment of the stream, in the order of the query.
///
///     List(rows) { task in Text(task.title) }
public struct QueryRows<M: Model>: Sendable {
    let objects: [LoadedObject]
    /// The objects that the model cannot read, sorted by the bytes of their ids. They are no rows, and they stay in the
    /// stream as they are.
    public let problems: [ModelProblem]
    /// True if the whole stream has arrived on this device. An object that is absent then does not exist.
    public let isComplete: Bool
    /// The seq up to which the stream was folded when the rows were read. Own events that wait are part of the rows.
    public let seq: Seq
    /// The changes since the rows that the reader of `Query.values` got before. All rows are insertions in the first
    /// element, and in the result of a single read.
    public internal(set) var changes: QueryChanges

    init(_ objects: [LoadedObject], problems: [ModelProblem], isComplete: Bool, seq: Seq) {
        (self.objects, self.problems, self.isComplete, self.seq) = (objects, problems, isComplete, seq)
        changes = QueryChanges(insertions: Array(objects.indices))
    }

    init(_ objects: [LoadedObject], _ model: LiveModel<M>) {
        self.init(
            objects,
            problems: model.problems,
            isComplete: model.dataset.isComplete,
            seq: model.dataset.seq
        )
    }

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
