import ReelCore
import ReelLog
import ReelSQLite

/// How far a file has been folded, and what the barriers up to there have said.
struct StoredPosition {
    /// The next seq to fold: what lies before it is folded in all streams.
    var next: Seq = 0
    /// The next seq to read: what lies between `next` and it is folded but for the streams in `waiting`.
    var read: Seq = 0
    /// The streams whose events wait for their turn, and the first seq of each that its rows lack.
    var waiting: [StreamName: Seq] = [:]
    /// Where in its life the partition is.
    var phase = PartitionRules.Phase.seeds
    /// The last record that was read, by which the log is known again; nil: there was none.
    var last: Witness?
    /// The seq behind the seeds that were folded; 0: there were none.
    var seedsEnd: Seq = 0
    /// How many logs were the current one before the file's; nil: that was not written yet.
    var number: Int64?
    /// The deployment of the file's log; nil: that was not written yet.
    var deployment: Deployment?
    /// The seq from which on the index has every event and barrier; without an index the next seq.
    var oldestEvent: Seq
    /// The seq of the last barrier in the index; −1: there is none.
    var lastBarrier: Seq
    /// The form of the file's rows: another one where an older build wrote it.
    var format = SnapshotFile.format

    /// The last seq that is folded in all streams.
    var seq: Seq { next - 1 }

    /// The position of one stream, as if the file had no other.
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

    /// The epoch that follows, once the end of this one was folded.
    var following: Epoch? {
        if case .ended(let epoch) = phase, waiting.isEmpty { epoch } else { nil }
    }

    /// Whether the state that the epoch begins with was not read whole yet: no snapshot is made of a seq inside it.
    /// Only the first log may begin with none; in each partition of another one stands at least what opens it.
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

    /// The position that a file holds.
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

    /// The streams that wait, each row compared with its hash.
    private static func waiting(in connection: Connection) throws -> [StreamName: Seq] {
        var waiting: [StreamName: Seq] = [:]
        let rows = try connection.prepare("SELECT name, next, hash FROM waiting")
        while try rows.step() {
            try StoredRow.check(StoredRow.waiting(rows.bytes(0), rows.integer(1)), rows, 2, "of `waiting`")
            guard let name = StreamName(rows.text(0)) else {
                throw SnapshotFile.Unusable(reason: "found a stream without a name that waits")
            }
            waiting[name] = rows.integer(1)
        }
        return waiting
    }

    /// Writes it, but for the log's number and deployment. Inside a transaction.
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
