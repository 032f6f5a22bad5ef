internal import ReelCore
internal import ReelSQLite
internal import Synchronization

/// A connection for one snapshot at a time. It sees one moment from `pin` to `unpin`. Safe on any thread.
final class SQLiteReader: Sendable {
    private enum State {
        case idle(ReadConnection)
        case pinned(ReadConnection)
        case closed
    }

    private let state: Mutex<State>

    /// Opens a connection.
    init(path: String) throws(ReelError) {
        do throws(SQLiteError) {
            state = Mutex(.idle(try ReadConnection(path: path)))
        } catch {
            throw ReelError(error, doing: "open \(path)")
        }
    }

    /// Begins to see the present moment.
    func pin() throws(ReelError) {
        try state.withLock { state throws(ReelError) in
            guard case .idle(let connection) = state else { throw .closedStorage }
            do throws(SQLiteError) { try connection.begin() } catch { throw ReelError(error, doing: "reading") }
            state = .pinned(connection)
        }
    }

    /// Ends a snapshot. Returns false if the connection cannot be used again.
    func unpin() -> Bool {
        state.withLock { state in
            guard case .pinned(let connection) = state else { return false }
            guard connection.end() else {
                state = .closed
                return false
            }
            state = .idle(connection)
            return true
        }
    }

    /// Ends the connection. Waits for a read on another thread, which is short: no caller's code runs inside it.
    func close() { state.withLock { $0 = .closed } }

    /// Returns the value of a key; nil if the key is absent.
    func value(for key: [UInt8]) throws(ReelError) -> [UInt8]? {
        try read { connection throws(SQLiteError) in try connection.value(for: key) }
    }

    /// Reads the next pairs into the batch.
    func read(into batch: inout PairBatch, to end: [UInt8]) throws(ReelError) {
        try read { connection throws(SQLiteError) in try connection.read(into: &batch, to: end) }
    }

    private func read<R: Sendable>(
        _ body: (ReadConnection) throws(SQLiteError) -> R
    ) throws(ReelError) -> R {
        try state.withLock { state throws(ReelError) in
            guard case .pinned(let connection) = state else { throw .closedStorage }
            do throws(SQLiteError) { return try body(connection) } catch { throw ReelError(error, doing: "reading") }
        }
    }
}

/// The connection of a reader with its statements. One thread at a time may use it.
private final class ReadConnection {
    private let connection: Connection
    private let beginning: Statement
    private let ending: Statement
    private let pin: Statement
    private let get: Statement
    private let rangeFrom: Statement
    private let rangeAfter: Statement

    init(path: String) throws(SQLiteError) {
        connection = try Connection(path: path, mode: .readOnly, busyMs: 5_000)
        beginning = try connection.prepare("BEGIN")
        ending = try connection.prepare("COMMIT")
        pin = try connection.prepare("SELECT 1 FROM mark")
        get = try connection.prepare("SELECT value FROM pair WHERE key = ?")
        rangeFrom = try connection.prepare("SELECT key, value FROM pair WHERE key >= ? AND key < ? ORDER BY key")
        rangeAfter = try connection.prepare("SELECT key, value FROM pair WHERE key > ? AND key < ? ORDER BY key")
    }

    func begin() throws(SQLiteError) {
        try beginning.run()
        do throws(SQLiteError) {
            // The transaction sees the moment of its first read.
            try pin.run()
        } catch {
            connection.rollback()
            throw error
        }
    }

    func end() -> Bool {
        if (try? ending.run()) == nil { connection.rollback() }
        return !connection.inTransaction
    }

    func value(for key: [UInt8]) throws(SQLiteError) -> [UInt8]? {
        try key.withUnsafeBufferPointer { key throws(SQLiteError) in
            get.bind(1, lending: UnsafeRawBufferPointer(key))
            guard try get.step() else { return nil }
            defer { get.reset() }
            guard get.isBlob(0) else { throw Self.wrongType }
            return get.array(0)
        }
    }

    func read(into batch: inout PairBatch, to end: [UInt8]) throws(SQLiteError) {
        let rows = batch.isFirst ? rangeFrom : rangeAfter
        try batch.next.withUnsafeBufferPointer { next throws(SQLiteError) in
            try end.withUnsafeBufferPointer { end throws(SQLiteError) in
                rows.bind(1, lending: UnsafeRawBufferPointer(next))
                rows.bind(2, lending: UnsafeRawBufferPointer(end))
                defer { rows.reset() }
                while batch.hasRoom, try rows.step() {
                    guard rows.isBlob(0), rows.isBlob(1) else { throw Self.wrongType }
                    guard batch.append(rows.bytes(0), rows.bytes(1)) else {
                        throw .corrupt("found keys out of their order in table pair")
                    }
                }
            }
        }
    }

    private static var wrongType: SQLiteError { .corrupt("found a value that is no blob in table pair") }
}
