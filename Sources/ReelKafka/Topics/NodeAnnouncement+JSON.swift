internal import ReelCore
internal import ReelLog

// A record of `reel.nodes`. Its key is the node's id, and its value is one JSON object.
extension NodeAnnouncement {
    /// The announcement as JSON: `{"admin":…,"advertised":…,"at":…,"build":…,"epoch":…,"folded":[[0,40],…],"id":…,
    /// "partitions":[[0,41],…],"ready":true,"role":…,
    /// "stops":[{"code":…,"hash":…,"partition":0,"role":…,"seq":…},…],"url":…}`.
    ///
    /// - `"left":true`: the node leaves.
    /// - `folded`: only for the role `serve`.
    /// - `hash` and `seq`: only in a stop that is evidence of a loss.
    var json: [UInt8] {
        var object = JSONObjectWriter()
        object.member("admin", adminURL)
        object.member("advertised", advertised)
        object.member("at", atMs)
        object.member("build", build)
        object.member("epoch", epoch?.description)
        if !folded.isEmpty { object.member("folded", folded) { $0.append(integers: Int64($1.partition), $1.seq) } }
        object.member("id", id)
        if hasLeft { object.member("left", true) }
        object.member("partitions", positions) { $0.append(integers: Int64($1.partition), $1.seq) }
        if let isReady { object.member("ready", isReady) }
        object.member("role", role)
        if !stops.isEmpty {
            object.objects("stops", stops) { object, stop in
                object.member("code", stop.code.rawValue)
                object.member("hash", stop.lost.map { Hex64.text($0.hash) })
                object.member("partition", stop.partition)
                object.member("role", stop.role)
                object.member("seq", stop.lost?.seq)
            }
        }
        object.member("url", url)
        return object.finish()
    }

    /// Reads a record; nil if it is not an announcement. Unknown members belong to a later version and are ignored.
    init?(json bytes: Bytes) {
        var announcement = NodeAnnouncement(
            id: "",
            role: "",
            url: "",
            advertised: nil,
            build: "",
            positions: [],
            atMs: 0
        )
        var reader = JSONReader(bytes, levels: 8, shape: .badRequest)
        do throws(ReelError) {
            try reader.object { (reader, key) throws(ReelError) in
                switch key.raw {
                case "admin": announcement.adminURL = try reader.string()
                case "advertised": announcement.advertised = try reader.string()
                case "at": announcement.atMs = try reader.integer()
                case "build": announcement.build = try reader.string()
                case "epoch": announcement.epoch = Epoch(try reader.string())
                case "id": announcement.id = try reader.string()
                case "folded": announcement.folded = try Self.positions(&reader)
                case "ready": announcement.isReady = try reader.boolean()
                case "stops":
                    try reader.array { (reader) throws(ReelError) in
                        if let stop = try Self.stop(&reader) { announcement.stops.append(stop) }
                    }
                case "left": announcement.hasLeft = try reader.boolean()
                case "role": announcement.role = try reader.string()
                case "url": announcement.url = try reader.string()
                case "partitions": announcement.positions = try Self.positions(&reader)
                default: try reader.skip()
                }
            }
        } catch {
            return nil
        }
        guard !announcement.id.isEmpty else { return nil }
        self = announcement
    }

    /// Returns nil for a code that this version does not know.
    private static func stop(_ reader: inout JSONReader) throws(ReelError) -> Stop? {
        var (role, partition, code, seq, hash) = ("", Int?.none, ErrorCode?.none, Seq?.none, UInt64?.none)
        try reader.object { (reader, key) throws(ReelError) in
            switch key.raw {
            case "role": role = try reader.string()
            case "partition": partition = Int(exactly: try reader.integer(from: 0))
            case "code": code = ErrorCode(rawValue: try reader.string())
            case "seq": seq = try reader.integer(from: 0)
            case "hash": hash = Hex64.parse(try reader.string())
            default: try reader.skip()
            }
        }
        guard let partition, let code else { return nil }
        var lost: Witness?
        if let seq, let hash { lost = Witness(seq: seq, hash: hash) }
        return Stop(role: role, partition: partition, code: code, lost: lost)
    }

    private static func positions(_ reader: inout JSONReader) throws(ReelError) -> [Position] {
        var positions: [Position] = []
        try reader.array { (reader) throws(ReelError) in
            var pair: [Int64] = []
            try reader.array { (reader) throws(ReelError) in pair.append(try reader.integer(from: -1)) }
            guard pair.count == 2, let partition = Int(exactly: pair[0]), partition >= 0 else {
                throw ReelError(.badRequest, "a position is a partition and a seq")
            }
            positions.append(Position(partition: partition, seq: pair[1]))
        }
        return positions
    }
}
