internal import ReelCore
internal import ReelLog

/// One call of `append` in progress: collects the delivery reports of its records. Once the records were produced, only
/// the appender's thread uses it.
final class PendingAppend: @unchecked Sendable {
    typealias Done = @Sendable (Result<[Seq], LogError>) -> Void

    let partition: Int
    let records: [LogAppend]
    let byteCount: Int
    private var seqs: [Seq]
    private var unreported: Int
    private var error: LogError?
    private let done: Done
    /// One slot per record, passed to librdkafka as the opaque pointer. The slot's address gives the index of the
    /// record, and its content is the append.
    private let slots: UnsafeMutablePointer<Unmanaged<PendingAppend>>

    init(_ records: [LogAppend], to partition: Int, byteCount: Int, done: @escaping Done) {
        self.partition = partition
        self.records = records
        self.byteCount = byteCount
        self.done = done
        let count = records.count
        seqs = Array(repeating: .none, count: count)
        unreported = count
        slots = .allocate(capacity: count)
        slots.initialize(repeating: Unmanaged.passUnretained(self), count: count)
    }

    deinit {
        slots.deallocate()
    }

    var count: Int { seqs.count }

    /// Returns the opaque pointer that librdkafka returns with the report of record `index`.
    func opaque(_ index: Int) -> UnsafeMutableRawPointer {
        UnsafeMutableRawPointer(slots + index)
    }

    /// Returns the append of a report.
    static func of(_ opaque: UnsafeMutableRawPointer) -> PendingAppend {
        opaque.assumingMemoryBound(to: Unmanaged<PendingAppend>.self).pointee.takeUnretainedValue()
    }

    /// Takes the result of one record. Returns true if it was the last one.
    func report(_ opaque: UnsafeMutableRawPointer, _ result: Result<Seq, LogError>) -> Bool {
        let index = opaque.assumingMemoryBound(to: Unmanaged<PendingAppend>.self) - slots
        switch result {
        case .success(let seq): seqs[index] = seq
        case .failure(let failure): error = error ?? failure
        }
        unreported -= 1
        return unreported == 0
    }

    /// Takes the failure of `count` records that were never produced. Returns true if no record remains.
    func giveUp(_ count: Int, _ failure: LogError) -> Bool {
        error = error ?? failure
        unreported -= count
        return unreported == 0
    }

    func answer() {
        done(error.map { .failure($0) } ?? .success(seqs))
    }
}
