internal import ReelCore
internal import ReelLog

// A record of `reel.nodes`: key = the node's id, value = one JSON object.
extension NodeAnnouncement {
    /// `{"advertised":…,"at":…,"build":…,"epoch":…,"id":…,"partitions":[[0,41],…],"role":…,"url":…}`, and
    /// `"left":true` of a node that leaves.
    var json: [UInt8] {
        var object = JSONObjectWriter()
        object.member("advertised", advertised)
        object.member("at", atMs)
        object.member("build", build)
        object.member("epoch", epoch?.description)
        object.member("id", id)
        if hasLeft { object.member("left", true) }
        object.member("partitions", positions) { $0.append(integers: Int64($1.partition), $1.seq) }
        object.member("role", role)
        object.member("url", url)
        return object.finish()
    }

    /// What a record says; nil if it is no announcement. Members that are not known are for a later version.
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
                case "advertised": announcement.advertised = try reader.string()
                case "at": announcement.atMs = try reader.integer()
                case "build": announcement.build = try reader.string()
                case "epoch": announcement.epoch = Epoch(try reader.string())
                case "id": announcement.id = try reader.string()
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
