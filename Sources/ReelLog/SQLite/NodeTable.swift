internal import ReelCore
internal import ReelSQLite

/// The table of node announcements: one row per node, with its latest announcement. The column `positions` has words,
/// separated by spaces:
///
/// - the epoch
/// - `PARTITION:SEQ` for each partition
/// - `folded=PARTITION:SEQ` for each partition that a node of the role `serve` folds
/// - `admin=URL`: the operator's port
/// - `ready=0` or `ready=1`
/// - `stop=ROLE:PARTITION:CODE` for each partition that is not processed, followed by `:SEQ:HASH` for a loss
/// - `left` for a node that leaves
///
/// A reader skips words that it does not know.
enum NodeTable {
    static let list = """
        SELECT id, role, url, advertised, build, positions, at_ms FROM nodes WHERE at_ms >= ?1
        ORDER BY at_ms DESC LIMIT \(NodeAnnouncement.nodesMax)
        """
    static let put = "INSERT OR REPLACE INTO nodes VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
    static let forget = "DELETE FROM nodes WHERE at_ms < ?1"
    /// Sets announcements from the future to the present: they were made while a clock was wrong. So they expire like
    /// others.
    static let clamp = "UPDATE nodes SET at_ms = ?1 WHERE at_ms > ?1"
    static let bound = """
        DELETE FROM nodes WHERE id IN
        (SELECT id FROM nodes ORDER BY at_ms DESC LIMIT -1 OFFSET \(NodeAnnouncement.nodesMax))
        """

    private static let (admin, folded, ready, stop, left) = ("admin=", "folded=", "ready=", "stop=", "left")

    static func bind(_ node: NodeAnnouncement, to put: Statement) {
        put.bind(1, node.id)
        put.bind(2, node.atMs)
        put.bind(3, node.role)
        put.bind(4, node.url)
        put.bind(5, node.advertised)
        put.bind(6, node.build)
        let positions = node.positions.map { "\($0.partition):\($0.seq)" }
        var words = (node.epoch.map { ["\($0)"] } ?? []) + positions
        words += node.folded.map { "\(folded)\($0.partition):\($0.seq)" }
        if let url = node.adminURL { words.append("\(admin)\(url)") }
        if let isReady = node.isReady { words.append("\(ready)\(isReady ? 1 : 0)") }
        words += node.stops.map { stop in
            let lost = stop.lost.map { ":\($0.seq):\(Hex64.text($0.hash))" } ?? ""
            return "\(Self.stop)\(stop.role):\(stop.partition):\(stop.code.rawValue)\(lost)"
        }
        if node.hasLeft { words.append(left) }
        put.bind(7, words.joined(separator: " "))
    }

    /// Returns the nodes, sorted by id. No `heardMs` is later than `nowMs`.
    static func read(
        _ list: Statement,
        since oldestMs: Int64,
        nowMs: Int64
    ) throws(SQLiteError) -> [NodeAnnouncement] {
        list.bind(1, oldestMs)
        var nodes: [NodeAnnouncement] = []
        while try list.step() {
            let words = list.text(5).split(separator: " ")
            var node = NodeAnnouncement(
                id: list.text(0),
                role: list.text(1),
                url: list.text(2),
                advertised: list.optionalText(3),
                build: list.text(4),
                epoch: words.first.flatMap { Epoch(String($0)) },
                positions: words.compactMap(position),
                atMs: list.integer(6)
            )
            node.heardMs = min(node.atMs, nowMs)
            node.hasLeft = words.last == left[...]
            for word in words {
                if word.hasPrefix(folded) {
                    if let known = position(word.dropFirst(folded.count)) { node.folded.append(known) }
                } else if word.hasPrefix(admin) {
                    node.adminURL = String(word.dropFirst(admin.count))
                } else if word.hasPrefix(ready) {
                    node.isReady = word.hasSuffix("1")
                } else if word.hasPrefix(stop) {
                    if let stop = self.stop(word.dropFirst(stop.count)) { node.stops.append(stop) }
                }
            }
            nodes.append(node)
        }
        return nodes.sorted { $0.id < $1.id }
    }

    private static func stop(_ text: Substring) -> NodeAnnouncement.Stop? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 3 || parts.count == 5, let partition = Int(parts[1]),
            (0..<LogTables.largestPartitionCount).contains(partition), let code = ErrorCode(rawValue: String(parts[2]))
        else { return nil }
        var lost: Witness?
        if parts.count == 5 {
            guard let seq = Seq(parts[3]), (0...largestInteger).contains(seq), let hash = Hex64.parse(String(parts[4]))
            else { return nil }
            lost = Witness(seq: seq, hash: hash)
        }
        return NodeAnnouncement.Stop(role: String(parts[0]), partition: partition, code: code, lost: lost)
    }

    private static func position(_ text: Substring) -> NodeAnnouncement.Position? {
        let parts = text.split(separator: ":")
        guard parts.count == 2, let partition = Int(parts[0]), let seq = Seq(parts[1]),
            (0..<LogTables.largestPartitionCount).contains(partition), (Seq.none...largestInteger).contains(seq)
        else { return nil }
        return NodeAnnouncement.Position(partition: partition, seq: seq)
    }
}
