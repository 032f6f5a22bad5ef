import ReelBase
import ReelCore
import ReelLog
import ReelNode

/// The announcement of a node, with its lag.
struct ClusterRow: Equatable {
    /// The position of one role of the node in a partition.
    struct Place: Equatable {
        /// `gateway` or `snapshot`.
        var role: String
        var partition: Int64
        var seq: Seq
        /// The lag in records, against earlier announcements; nil if the announced seq is implausible.
        var lag: Seq?
        /// The reason why the partition is not processed, a code of docs/reference/errors.md; nil if it is processed.
        var code: String?
    }

    var id = ""
    var role = ""
    var url = ""
    /// The URL of its operator's port; nil if it has none that other machines reach.
    var adminURL: String?
    /// True if this is the node that answered the request.
    var isWhoAnswers = false
    var build = ""
    /// The time of the announcement by the node's clock, in milliseconds since 1970; nil if it is unknown.
    var atMs: Int64?
    /// The age of the announcement when the row was created, in milliseconds; nil if it is unknown.
    var ageMs: Int64?
    /// True if the node has announced that it leaves.
    var hasLeft = false
    /// True if the node can serve; nil for a node of an older build, which does not announce it.
    var isReady: Bool?
    /// The positions in every partition of every role.
    var places: [Place] = []
    /// The reason why the announcement, or a part of it, cannot be true; nil if there is none.
    var fault: String?
    /// The state that follows from the announcements of all nodes.
    var state = State.unknown

    /// Reads the rows: from the log if --log is given, else from the first node that answers.
    static func read(_ options: Options, _ console: Console) async throws -> [ClusterRow] {
        if options[LogArguments.log] != nil {
            let log = try LogArguments.open(options, console)
            defer { log.close() }
            return try await current(in: log)
        }
        let caller = try await NodeCaller(try NodeArguments.addresses(options))
        let body: [UInt8]
        do {
            body = try await caller.get("/v1/cluster")
        } catch let refusal as Refusal where refusal.code == .notFound || refusal.code == .forbidden {
            var complaint = refusal.complaint
            complaint.message +=
                refusal.code == .notFound
                ? "; name the operator's port of the node with --url, or the log with --log"
                : "; give a token with the right (`reel token issue --admin '*'`) with --token, use an operator's port"
                    + " on the loopback, or name the log with --log"
            throw complaint
        }
        do {
            var rows = try body.withUnsafeBytes(rows)
            conclude(&rows, newestMs: rows.compactMap(\.ageMs).min() ?? 0)
            return rows
        } catch let error as ReelError {
            throw CommandError(.badData, "the node's answer cannot be read: \(error.message)")
        }
    }

    /// Parses the body of `GET /v1/cluster`. An announcement that cannot be read only affects its own row.
    static func rows(_ body: Bytes) throws(ReelError) -> [ClusterRow] {
        var reader = JSONReader(body, levels: ClientFrame.levels, shape: .badFrame)
        var (rows, own): ([ClusterRow], String?) = ([], nil)
        try reader.object { (reader, key) throws(ReelError) in
            switch key.string {
            case "node": own = try reader.string()
            case "nodes": try reader.array { (reader) throws(ReelError) in rows.append(ClusterRow(try reader.raw())) }
            default: try reader.skip()
            }
        }
        for index in rows.indices where rows[index].id == own { rows[index].isWhoAnswers = true }
        addLags(to: &rows)
        return rows
    }

    /// Reads the rows from the log. Announced positions are older than the log's end. So this reads the ends first, and
    /// then waits, at most three seconds, until each living node has announced itself again.
    private static func current(in log: any EventLog) async throws -> [ClusterRow] {
        var heads: [Seq] = []
        for partition in 0..<log.partitions { heads.append(try log.bounds(partition).last) }
        let before = Dictionary(try log.nodes().map { ($0.id, $0.atMs) }, uniquingKeysWith: max)
        var rows = try rows(of: log)
        for _ in 0..<12 {
            let waits = rows.contains { row in
                !row.hasLeft && row.ageMs ?? .max < patienceMs && before[row.id] == row.atMs
            }
            guard waits else { break }
            try await Task.sleep(for: .milliseconds(250))
            rows = try Self.rows(of: log)
        }
        for index in rows.indices where before[rows[index].id] != rows[index].atMs {
            rows[index].compare(withEnds: heads)
        }
        var ends: [Seq] = []
        for partition in 0..<log.partitions { ends.append(try log.bounds(partition).last) }
        for index in rows.indices { rows[index].refuse(beyond: ends) }
        conclude(&rows, newestMs: 0)
        return rows
    }

    /// Sets the lags against `ends`, the last seqs that the log had before the node announced itself.
    private mutating func compare(withEnds ends: [Seq]) {
        for index in places.indices where places[index].lag != nil {
            guard let end = Int(exactly: places[index].partition), ends.indices.contains(end) else { continue }
            places[index].lag = max(0, ends[end] - places[index].seq)
        }
    }

    /// Marks positions beyond `ends`, the last seqs of the log: no node can have read them.
    private mutating func refuse(beyond ends: [Seq]) {
        for index in places.indices {
            guard let end = Int(exactly: places[index].partition), ends.indices.contains(end),
                places[index].seq > ends[end]
            else { continue }
            places[index].lag = nil
            fault = fault ?? "announces seq \(places[index].seq) of partition \(end), which ends at \(ends[end])"
        }
    }

    /// Sets the lag of each position against the positions that were announced before it.
    private static func addLags(to rows: inout [ClusterRow]) {
        let heads = AnnouncedHeads(
            rows.flatMap { row in row.places.map { ($0.partition, $0.seq, row.heardMs) } }
        )
        for index in rows.indices {
            let heardMs = rows[index].heardMs
            for place in rows[index].places.indices {
                let found = rows[index].places[place]
                let lag = heads.lag(partition: found.partition, seq: found.seq, heardMs: heardMs)
                rows[index].places[place].lag = lag
                guard lag == nil, rows[index].fault == nil else { continue }
                rows[index].fault = "announces seq \(found.seq) of partition \(found.partition), which is implausible"
            }
        }
    }

    /// The time at which the announcement was received, in milliseconds relative to now: negative, larger if newer.
    private var heardMs: Int64 { -(ageMs ?? .max) }

    /// The largest lag of all roles and partitions; nil if it is unknown.
    var largestLag: Seq? { isThere ? places.compactMap(\.lag).max() : nil }

    /// Returns a row for each announcement in the log.
    static func rows(of log: any EventLog) throws(LogError) -> [ClusterRow] {
        var rows = try log.nodes().map { node in
            var row = ClusterRow()
            (row.id, row.role, row.url, row.build, row.atMs) = (node.id, node.role, node.url, node.build, node.atMs)
            row.adminURL = node.adminURL
            (row.ageMs, row.hasLeft, row.isReady) = (Self.age(of: node.heardMs), node.hasLeft, node.isReady)
            for (role, positions) in node.roles(in: log.epoch) {
                row.places += positions.map { position in
                    Place(
                        role: role,
                        partition: Int64(position.partition),
                        seq: position.seq,
                        lag: nil,
                        code: node.stop(of: role, position.partition)?.rawValue
                    )
                }
            }
            return row
        }
        addLags(to: &rows)
        return rows
    }

    private static func age(of atMs: Int64) -> Int64 { max(0, WallClock.nowMs() - atMs) }

    /// The age of the announcement as text: `2.1 s ago`; `left 2.1 s ago` if the node leaves.
    var seen: String {
        guard let ageMs else { return hasLeft ? "left" : "-" }
        let ago = ageMs < 120_000 ? "\(ageMs / 1_000).\(ageMs % 1_000 / 100) s ago" : "\(ageMs / 60_000) min ago"
        return hasLeft ? "left \(ago)" : ago
    }

    /// The roles, in the order of `places`.
    private var roles: [String] {
        places.reduce(into: []) { roles, place in if roles.last != place.role { roles.append(place.role) } }
    }

    /// The row as a line of JSON.
    var json: [UInt8] {
        var line = JSONObjectWriter()
        line.member("id", id)
        line.member("role", role)
        line.member("url", url)
        line.member("admin", adminURL)
        line.member("build", build)
        line.member("at", atMs)
        line.member("age_ms", ageMs)
        if hasLeft { line.member("left", true) }
        if let isReady { line.member("ready", isReady) }
        if state != .unknown { line.member("state", state.rawValue) }
        line.member("fault", fault)
        line.objects("roles", roles) { object, role in
            object.member("role", role)
            object.objects("partitions", places.filter { $0.role == role }) { object, place in
                object.member("partition", place.partition)
                object.member("seq", place.seq)
                object.member("lag", place.lag)
                object.member("code", place.code)
            }
        }
        return line.finishLine()
    }
}

extension ClusterRow {
    /// Parses the announcement of a node; members after an error keep their defaults.
    private init(_ node: Bytes) {
        var row = ClusterRow()
        var reader = JSONReader(node, levels: ClientFrame.levels, shape: .badFrame)
        do throws(ReelError) {
            try reader.object { (reader, key) throws(ReelError) in
                switch key.raw {
                case "id": row.id = try reader.string()
                case "role": row.role = try reader.string()
                case "url": row.url = try reader.string()
                case "admin": row.adminURL = try reader.string()
                case "build": row.build = try reader.string()
                case "at": row.atMs = try reader.integer()
                case "age_ms": row.ageMs = try reader.integer(from: 0)
                case "left": row.hasLeft = try reader.boolean()
                case "ready": row.isReady = try reader.boolean()
                case "roles":
                    try reader.array { (reader) throws(ReelError) in row.places += try Place.all(&reader) }
                default: try reader.skip()
                }
            }
        } catch {
            row.fault = "its announcement cannot be read: \(error.message)"
        }
        // A node of an older build does not send the age.
        row.ageMs = row.ageMs ?? row.atMs.map(Self.age)
        self = row
    }
}

extension ClusterRow.Place {
    /// Parses the partitions of one role.
    fileprivate static func all(_ reader: inout JSONReader) throws(ReelError) -> [Self] {
        var (role, places) = ("", [Self]())
        try reader.object { (reader, key) throws(ReelError) in
            switch key.raw {
            case "role": role = try reader.string()
            case "partitions":
                try reader.array { (reader) throws(ReelError) in places.append(try Self(&reader)) }
            default: try reader.skip()
            }
        }
        return places.map { place in
            var place = place
            place.role = role
            return place
        }
    }

    private init(_ reader: inout JSONReader) throws(ReelError) {
        self.init(role: "", partition: 0, seq: .none)
        try reader.object { (reader, key) throws(ReelError) in
            switch key.raw {
            case "partition": partition = try reader.integer()
            case "seq": seq = try reader.integer(from: -1)
            case "code": code = try reader.string()
            default: try reader.skip()
            }
        }
    }
}
