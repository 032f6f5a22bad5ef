package import ReelCore
package import ReelLog

/// A copy of a record that a test can compare.
package struct Seen: Equatable, Sendable {
    package var seq: Seq
    package var key: String
    package var value: [UInt8]
    package var witness: Witness?

    package var text: String { String(decoding: value, as: UTF8.self) }
}

extension RecordBatch {
    package var seen: [Seen] {
        entries.map { entry in
            withRecord(entry) { key, value in
                Seen(
                    seq: entry.seq,
                    key: String(decoding: key, as: UTF8.self),
                    value: Array(value),
                    witness: entry.witness
                )
            }
        }
    }
}

extension LogAppend {
    package init(_ key: String, _ value: String, witness: Witness? = nil) {
        self.init(key: Array(key.utf8), value: Array(value.utf8), witness: witness)
    }
}

extension EventLog {
    /// Appends records in one call and waits for their seqs.
    @discardableResult
    package func append(_ records: [LogAppend], to partition: Int = 0) async throws -> [Seq] {
        try await withCheckedThrowingContinuation { continuation in
            append(records, to: partition) { continuation.resume(with: $0) }
        }
    }

    /// Appends one record for each text, all in one call, and waits for their seqs.
    @discardableResult
    package func append(_ texts: String..., to partition: Int = 0) async throws -> [Seq] {
        try await append(texts.map { LogAppend("s", $0) }, to: partition)
    }
}
