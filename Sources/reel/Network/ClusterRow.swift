import ReelCore
import ReelLog
import ReelNode

/// A node as it announced itself, and how far it is behind.
struct ClusterRow: Equatable {
    /// How far one role of the node is in a partition.
    struct Place: Equatable {
        /// `gateway` or `snapshot`.
        var role: String
        var partition: Int64
        var seq: Seq
        var lag: Seq
        /// Why the partition is not processed, a code of docs/errors.md; nil: it is.
        var code: String?
    }

    var id = ""
    var role = ""
    var url = ""
    var build = ""
    /// When it announced itself, of its own clock; nil: it was not said.
    var atMs: Int64?
    /// How long ago that was when the row was made; nil: it was not said.
    var ageMs: Int64?
    /// Its last word was that it leaves.
    var hasLeft = false
    /// Whether it can serve; nil: a node of an older build, which does not say it.
    var isReady: Bool?
    /// Every partition of every role.
    var places: [Place] = []

    /// From the log if one is named, else from the first node that answers.
    static func read(_ options: Options, _ console: Console) async throws -> [ClusterRow] {
        if options[LogArguments.log] != nil {
            let log = try LogArguments.open(options, console)
            defer { log.close() }
            return try rows(of: log)
        }
        let caller = try await NodeCaller(try NodeArguments.addresses(options))
        let body = try await caller.get("/v1/cluster")
        do {
            return try body.withUnsafeBytes(rows)
        } catch let error as ReelError {
            throw Complaint(.badData, "the node's answer cannot be read: \(error.message)")
        }
    }

    /// The rows of the body of `GET /v1/cluster`.
    static func rows(_ body: Bytes) throws(ReelError) -> [ClusterRow] {
        var reader = JSONReader(body, levels: ClientFrame.levels, shape: .badFrame)
        var rows: [ClusterRow] = []
        try reader.object { (reader, key) throws(ReelError) in
            guard key.string == "nodes" else { return try reader.skip() }
            try reader.array { (reader) throws(ReelError) in rows.append(try ClusterRow(&reader)) }
        }
        return rows
    }

    static func rows(of log: any EventLog) throws(LogError) -> [ClusterRow] {
        var heads: [Seq] = []
        for partition in 0..<log.partitions { heads.append(try log.bounds(partition).last) }
        return try log.nodes().map { node in
            var row = ClusterRow()
            (row.id, row.role, row.url, row.build, row.atMs) = (node.id, node.role, node.url, node.build, node.atMs)
            (row.ageMs, row.hasLeft, row.isReady) = (Self.age(of: node.heardMs), node.hasLeft, node.isReady)
            for (role, positions) in node.roles(in: log.epoch) {
                row.places += positions.map { position in
                    let head = heads.indices.contains(position.partition) ? heads[position.partition] : position.seq
                    return Place(
                        role: role,
                        partition: Int64(position.partition),
                        seq: position.seq,
                        lag: max(0, head - position.seq),
                        code: node.stop(of: role, position.partition)?.rawValue
                    )
                }
            }
            return row
        }
    }

    private static func age(of atMs: Int64) -> Int64 { max(0, WallClock.nowMs() - atMs) }

    /// How long ago it announced itself: `2.1 s ago`; or that it leaves: `left 2.1 s ago`.
    var seen: String {
        guard let ageMs else { return hasLeft ? "left" : "-" }
        let ago = ageMs < 120_000 ? "\(ageMs / 1_000).\(ageMs % 1_000 / 100) s ago" : "\(ageMs / 60_000) min ago"
        return hasLeft ? "left \(ago)" : ago
    }

    /// `ready`, `not ready` or `left`; `-` where that is not known.
    var state: String {
        if hasLeft { return "left" }
        return isReady.map { $0 ? "ready" : "not ready" } ?? "-"
    }

    /// The roles, in the order of the places.
    private var roles: [String] {
        places.reduce(into: []) { roles, place in if roles.last != place.role { roles.append(place.role) } }
    }

    /// A line of JSON.
    var json: [UInt8] {
        var line = JSONObjectWriter()
        line.member("id", id)
        line.member("role", role)
        line.member("url", url)
        line.member("build", build)
        line.member("at", atMs)
        line.member("age_ms", ageMs)
        if hasLeft { line.member("left", true) }
        if let isReady { line.member("ready", isReady) }
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
    private init(_ reader: inout JSONReader) throws(ReelError) {
        var row = ClusterRow()
        try reader.object { (reader, key) throws(ReelError) in
            switch key.raw {
            case "id": row.id = try reader.string()
            case "role": row.role = try reader.string()
            case "url": row.url = try reader.string()
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
        // A node of an older build does not say it.
        row.ageMs = row.ageMs ?? row.atMs.map(Self.age)
        self = row
    }
}

extension ClusterRow.Place {
    /// The partitions of one role.
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
        self.init(role: "", partition: 0, seq: .none, lag: 0)
        try reader.object { (reader, key) throws(ReelError) in
            switch key.raw {
            case "partition": partition = try reader.integer()
            case "seq": seq = try reader.integer(from: -1)
            case "lag": lag = try reader.integer()
            case "code": code = try reader.string()
            default: try reader.skip()
            }
        }
    }
}
