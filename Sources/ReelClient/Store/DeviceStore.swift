internal import ReelCore

/// The content of a device in a storage. For each stream it holds the queue of own events, the objects of a folded
/// state, the later events, and the ranges of seq that both prove. For all streams it holds the log's number and the
/// deployment. `StoreKey` lists the pairs. Belongs to the client's executor.
///
/// Position and data change in one commit. Promises to an app (an event in the queue, an op that was given) wait for
/// the disk. Data that can be received again does not wait, but comes later in the storage. So a lost end of the
/// storage leaves an earlier state, never a mixed one.
final class DeviceStore {
    let storage: any DeviceStorage
    /// The part of the store that does not belong to a stream.
    private(set) var client: ClientRow
    /// True if a number was reserved since the client's row was written.
    private var hasReservedNumbers = false
    /// The first number that no earlier run has taken.
    let firstNumber: Int64
    /// The generations whose pairs are of no more use, and are removed step by step.
    var unusedGenerations: [Int64] = []

    /// Reads the client's row. Throws `store_damaged` if it cannot be read.
    init(_ storage: any DeviceStorage) throws(ReelError) {
        self.storage = storage
        let snapshot = try storage.snapshot()
        client =
            try snapshot.sealed(StoreKey.client) { (content) throws(ReelError) in try ClientRow(content) }
            ?? ClientRow()
        firstNumber = client.nextNumber
        try checkStreams()
    }

    /// Commits everything that `body` writes, all or nothing.
    ///
    /// - Parameters:
    ///   - durably: true to return only when the data is on the disk.
    ///   - body: adds the changes.
    /// - Throws: `store_lost` if the files are not at their place, before or after. Another `ReelError` if the commit
    ///   failed.
    func commit(durably: Bool, _ body: (inout StorageChanges) throws(ReelError) -> Void) throws(ReelError) {
        var changes = StorageChanges()
        let streams = client.streams
        do throws(ReelError) {
            try body(&changes)
            if hasReservedNumbers { changeClient(&changes) { _ in } }
            guard !changes.isEmpty else { return }
            try storage.commit(changes, durably: durably)
        } catch {
            // The stream was neither added nor removed. A number that was taken stays so.
            client.streams = streams
            throw error
        }
        hasReservedNumbers = false
    }

    // MARK: The client

    /// The part of the store that does not belong to a stream.
    struct ClientRow: Equatable {
        /// The highest log number that a node has named.
        var logNumber = 0
        /// The user that the store belongs to; nil: no user.
        var user: String?
        /// The deployment that the device belongs to; nil: it has met none.
        var deployment: Deployment?
        /// The next number of a stream or of a generation.
        var nextNumber: Int64 = 1
        /// The number of streams.
        var streams = 0
    }

    /// Changes the client's row. Call it inside `commit`.
    func changeClient(_ changes: inout StorageChanges, _ change: (inout ClientRow) -> Void) {
        change(&client)
        changes.seal(client.content, for: StoreKey.client)
    }

    /// Returns a number that no stream and no generation has. The next commit stores that it is taken.
    func reserveNumber() -> Int64 {
        defer { client.nextNumber += 1 }
        hasReservedNumbers = true
        return client.nextNumber
    }
}

@available(*, unavailable)
extension DeviceStore: Sendable {}

extension DeviceStore.ClientRow {
    init(_ content: Bytes) throws(ReelError) {
        var row = RowReader(content)
        logNumber = Int(try row.number())
        user = try row.optionalText()
        let text = try row.optionalText()
        deployment = text.flatMap { Deployment($0) }
        nextNumber = try row.number()
        streams = Int(try row.number())
        guard logNumber >= 0, nextNumber > 0, streams >= 0, (text == nil) == (deployment == nil) else {
            throw row.damaged("a client")
        }
        try row.end()
    }

    var content: [UInt8] {
        var row = RowWriter([])
        row.write(Int64(logNumber))
        row.write(user)
        row.write(deployment?.description)
        row.write(nextNumber)
        row.write(Int64(streams))
        return row.bytes
    }
}
