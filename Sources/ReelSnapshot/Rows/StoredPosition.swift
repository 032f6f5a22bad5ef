import ReelCore
import ReelLog
import ReelSQLite

/// The position up to which a file is folded, with the effect of the barriers up to there.
struct StoredPosition {
    /// The next seq to fold: every stream is folded up to the seq before it.
    var next: Seq = 0
    /// The next seq to read: the streams in `waiting` are folded less far, and all others up to the seq before it.
    var read: Seq = 0
    /// The streams with events that wait for their turn, each with the first seq that its rows lack.
    var waiting: [StreamName: Seq] = [:]
    /// The phase of the partition.
    var phase = PartitionRules.Phase.seeds
    /// The last record that was read, which identifies the log; nil: there was none.
    var last: Witness?
    /// The seq after the folded seeds; 0: there were none.
    var seedsEnd: Seq = 0
    /// The number of logs that were the current one before the file's log; nil: not written yet.
    var number: Int64?
    /// The deployment of the file's log; nil: not written yet.
    var deployment: Deployment?
    /// The first seq from which on the index holds every event and barrier; without an index the next seq.
    var oldestEvent: Seq
    /// The seq of the last barrier in the index; −1: there is none.
    var lastBarrier: Seq
    /// The format of the file's rows; it differs from the current one if an older build wrote the file.
    var format = SnapshotFile.format

    /// The last seq that is folded in all streams.
    var seq: Seq { next - 1 }

    /// Returns the position of one stream, as if the file held no other stream.
    func of(_ stream: StreamName) -> StoredPosition {
        var position = self
        position.waiting = [:]
        if let next = waiting[stream] {
            (position.next, position.read, position.phase) = (next, next, .open)
        } else {
            position.next = read
        }
        return position
    }

    /// The epoch that follows, if the end of this epoch is folded.
    var following: Epoch? {
        if case .ended(let epoch) = phase, waiting.isEmpty { epoch } else { nil }
    }

    /// True if the seeds of the epoch are not read completely: no snapshot is made of a seq inside them. Only the first
    /// log may begin without seeds; in any other log each partition holds at least the barrier that opens it.
    var isInsideSeeds: Bool { phase == .seeds && (next > 0 || number ?? 0 > 0) }

    init(
        next: Seq,
        read: Seq,
        waiting: [StreamName: Seq],
        phase: PartitionRules.Phase,
        last: Witness?,
        seedsEnd: Seq,
        oldestEvent: Seq,
        lastBarrier: Seq
    ) {
        self.next = next
        self.read = read
        self.waiting = waiting
        self.phase = phase
        self.last = last
        self.seedsEnd = seedsEnd
        self.oldestEvent = oldestEvent
        self.lastBarrier = lastBarrier
    }

    /// Reads the position of a file.
    init(reading connection: Connection) throws {
        let meta = try StoredMeta(reading: connection)
        next = meta["next"] ?? 0
        read = max(next, meta["read"] ?? next)
        if read > next { waiting = try Self.waiting(in: connection) }
        seedsEnd = meta["seeds"] ?? 0
        number = meta["number"]
        deployment = meta["deployment"].map { Deployment(UInt64(bitPattern: $0)) }
        oldestEvent = meta[SnapshotFile.indexBegin] ?? next
        lastBarrier = meta["barrier"] ?? .none
        format = meta.format
        if let last = meta["last"], last >= 0 {
            self.last = Witness(seq: last, hash: UInt64(bitPattern: meta["hash"] ?? 0))
        }
        phase =
            switch meta["phase"] ?? 0 {
            case 0: .seeds
            case 1: .open
            default: .ended(Epoch(UInt64(bitPattern: meta["following"] ?? 0)))
            }
    }

    /// Returns the streams that wait; compares each row with its hash.
    private static func waiting(in connection: Connection) throws -> [StreamName: Seq] {
        var waiting: [StreamName: Seq] = [:]
        let rows = try connection.prepare("SELECT name, next, hash FROM waiting")
        while try rows.step() {
            try StoredRow.check(StoredRow.waiting(rows.bytes(0), rows.integer(1)), rows, 2, "of `waiting`")
            guard let name = StreamName(rows.text(0)) else {
                throw SnapshotFile.Unusable(reason: "found a waiting stream without a valid name")
            }
            waiting[name] = rows.integer(1)
        }
        return waiting
    }

    /// Writes the position without the log's number and deployment. Inside a transaction.
    func write(to file: SnapshotFile) throws {
        try file.setMeta("next", next)
        try file.setMeta("read", read)
        try file.setWaiting(waiting)
        try file.setMeta(SnapshotFile.indexBegin, oldestEvent)
        try file.setMeta("barrier", lastBarrier)
        if let last {
            try file.setMeta("last", last.seq)
            try file.setMeta("hash", Int64(bitPattern: last.hash))
        }
        if seedsEnd > 0 { try file.setMeta("seeds", seedsEnd) }
        switch phase {
        case .seeds: try file.setMeta("phase", 0)
        case .open: try file.setMeta("phase", 1)
        case .ended(let epoch):
            try file.setMeta("phase", 2)
            try file.setMeta("following", Int64(bitPattern: epoch.value))
        }
    }
}
