internal import ReelCore
internal import ReelLog

/// One call of `append` on its way: gathers the delivery reports of its records. After it was handed over it belongs to
/// the appender's thread.
final class PendingAppend: @unchecked Sendable {
    typealias Done = @Sendable (Result<[Seq], LogError>) -> Void

    let partition: Int
    let records: [LogAppend]
    let byteCount: Int
    private var seqs: [Seq]
    private var unreported: Int
    private var error: LogError?
    private let done: Done
    /// One for each record: where it lies says which record it is, what lies there whose.
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

    /// What librdkafka brings back with the report of record `index`.
    func opaque(_ index: Int) -> UnsafeMutableRawPointer {
        UnsafeMutableRawPointer(slots + index)
    }

    /// The append of a report.
    static func of(_ opaque: UnsafeMutableRawPointer) -> PendingAppend {
        opaque.assumingMemoryBound(to: Unmanaged<PendingAppend>.self).pointee.takeUnretainedValue()
    }

    /// A record was reported. True once that was the last one.
    func report(_ opaque: UnsafeMutableRawPointer, _ result: Result<Seq, LogError>) -> Bool {
        let index = opaque.assumingMemoryBound(to: Unmanaged<PendingAppend>.self) - slots
        switch result {
        case .success(let seq): seqs[index] = seq
        case .failure(let failure): error = error ?? failure
        }
        unreported -= 1
        return unreported == 0
    }

    /// So many of its records were never handed over. True if nothing else is to be waited for.
    func giveUp(_ count: Int, _ failure: LogError) -> Bool {
        error = error ?? failure
        unreported -= count
        return unreported == 0
    }

    func answer() {
        done(error.map { .failure($0) } ?? .success(seqs))
    }
}
