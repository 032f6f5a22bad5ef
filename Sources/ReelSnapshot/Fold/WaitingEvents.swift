import ReelCore

/// A FIFO of the records of one stream that wait for the stream's next turn, in seq order.
struct WaitingEvents {
    /// A record that was read and is not folded yet.
    struct Record {
        var seq: Seq
        var value: [UInt8]
        /// The barrier, if the record is one; nil: it is an event.
        var barrier: Barrier?
    }

    /// The records; those before `front` were taken.
    private var records: [Record] = []
    private var front = 0
    /// The size of the values in bytes.
    private(set) var bytes = 0

    var isEmpty: Bool { front == records.count }

    /// The number of records.
    var count: Int { records.count - front }

    /// The seq of the first record; nil: there is none.
    var next: Seq? { isEmpty ? nil : records[front].seq }

    /// Adds a record at the end.
    mutating func append(_ record: Record) {
        records.append(record)
        bytes += record.value.count
    }

    /// Removes the first record and returns it; nil: there is none.
    mutating func popFirst() -> Record? {
        guard !isEmpty else { return nil }
        let record = records[front]
        records[front].value = []
        front += 1
        bytes -= record.value.count
        if isEmpty {
            (records, front) = ([], 0)
        } else if front == 1_024 {
            records.removeSubrange(..<front)
            front = 0
        }
        return record
    }
}
