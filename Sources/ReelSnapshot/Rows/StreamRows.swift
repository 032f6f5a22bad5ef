import ReelCore

/// The rows of a stream's objects in a partition's file, for the fold of the stream. On the fold thread.
final class StreamRows: ObjectSource, @unchecked Sendable {
    /// The part of the rows that the fold has in memory.
    enum Coverage {
        /// All of them: an object that is not in memory does not exist.
        case whole
        /// Some of them.
        case partial
    }

    private let file: SnapshotFile
    private let stream: Int64
    private var coverage: Coverage
    /// The first error since the stream was opened.
    private var failure: (any Error)?
    /// The size of the rows that were read since the last write, in bytes.
    private(set) var bytesRead = 0

    /// The maximum number of keys in a page.
    private static let pageCount = 1_000

    init(of stream: Int64, in file: SnapshotFile, _ coverage: Coverage) {
        (self.stream, self.file, self.coverage) = (stream, file, coverage)
    }

    /// Called when the fold drops objects from memory.
    func becomePartial() { coverage = .partial }

    /// Called after the changed rows were written.
    func written() { bytesRead = 0 }

    /// Throws the first error of a read. The fold has then folded something else than the events, and is not used any
    /// more.
    func check() throws {
        if let failure { throw failure }
    }

    func row(for key: [UInt8]) -> StoredObjectRow? {
        guard coverage == .partial else { return nil }
        return read(nil) {
            let row = try file.object(stream, key: ObjectKey.stored(key))
            bytesRead += row?.bytes.count ?? 0
            return row
        }
    }

    func agingKeys(upTo seq: Seq, after last: AgingKey?) -> [AgingKey] {
        read([]) {
            let after = last.map { AgingKey(seq: $0.seq, key: ObjectKey.stored($0.key)) }
            return try file.agingKeys(stream, upTo: seq, after: after, limit: Self.pageCount).map { aging in
                AgingKey(seq: aging.seq, key: aging.key.withUnsafeBytes(ObjectKey.escaped))
            }
        }
    }

    var hasFailed: Bool { failure != nil }

    func failed(_ error: ReelError) { fail(error) }

    private func read<R>(_ absent: R, _ body: () throws -> R) -> R {
        do {
            return try body()
        } catch {
            fail(error)
            return absent
        }
    }

    private func fail(_ error: any Error) {
        if failure == nil { failure = error }
    }
}
