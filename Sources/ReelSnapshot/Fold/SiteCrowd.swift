import ReelBase
import ReelCore
import ReelNode
import ReelSQLite

/// The streams of a partition that have many sites.
struct SiteCrowd: Equatable, Sendable {
    /// The number of sites of the stream that has the most.
    var most = 0
    /// The number of streams that have at least half of the sites that a stream may have.
    var halfFull = 0
    /// The streams among them with the most sites.
    var streams: [CrowdedStream] = []

    /// The maximum number of streams in `streams`.
    private static let namedMax = 100

    init() {}

    /// Reads the crowded streams from a partition's file, as of `seq`. Reads the rows of crowded streams only, and else
    /// an index.
    init(of partition: Int, seq: Seq, in connection: Connection) throws {
        most = Int(try connection.integer("SELECT max(sites) FROM stream") ?? 0)
        guard most >= CrowdedStream.sitesMin else { return }
        let crowded = "FROM stream WHERE sites >= \(CrowdedStream.sitesMin)"
        halfFull = Int(try connection.integer("SELECT count(*) \(crowded)") ?? 0)
        let rows = try connection.prepare(
            "SELECT \(StoredRow.streamColumns) \(crowded) ORDER BY sites DESC LIMIT \(Self.namedMax)"
        )
        while try rows.step() {
            try StoredRow.checkStream(rows)
            guard let name = StreamName(rows.text(1)) else { continue }
            streams.append(CrowdedStream(stream: name, partition: partition, seq: seq, sites: Int(rows.integer(4))))
        }
    }
}

/// Logs a warning for each stream that runs out of sites: once when it has half of them, and once when it has all.
struct CrowdWatch {
    private var isFull: [StreamName: Bool] = [:]
    private var limiter = LineLimiter(lines: 10, windowMs: 60_000)

    /// Logs a line for each stream that has reached half of its sites, or all, since the previous call.
    mutating func look(at crowd: SiteCrowd, _ logger: Logger, nowMs: Int64 = WallClock.nowMs()) {
        var current: [StreamName: Bool] = [:]
        for stream in crowd.streams {
            let hasAll = stream.sites >= Limits.sites
            current[stream.stream] = hasAll
            guard isFull[stream.stream].map({ hasAll && !$0 }) ?? true, let leftOut = limiter.admit(nowMs: nowMs) else {
                continue
            }
            logger.warning(
                hasAll ? "stream takes no new sites" : "stream has many sites",
                [
                    "stream": "\(stream.stream)", "partition": "\(stream.partition)", "sites": "\(stream.sites)",
                    "limit": "\(Limits.sites)",
                    "do": "reel site retire \(stream.stream) --idle-events N --dry-run",
                    "lines_left_out": "\(leftOut)",
                ]
            )
        }
        isFull = current
    }
}
