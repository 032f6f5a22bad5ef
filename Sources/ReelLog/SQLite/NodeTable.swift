internal import ReelCore
internal import ReelSQLite

/// The table of node announcements: one row a node, its latest word. `positions` is the epoch, behind it
/// `PARTITION:SEQ` for each partition, and `left` for a node that leaves, with spaces between.
enum NodeTable {
    static let list = """
        SELECT id, role, url, advertised, build, positions, at_ms FROM nodes WHERE at_ms >= ?1 ORDER BY id
        """
    static let put = "INSERT OR REPLACE INTO nodes VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
    static let forget = "DELETE FROM nodes WHERE at_ms < ?1"

    private static let left = "left"

    static func bind(_ node: NodeAnnouncement, to put: Statement) {
        put.bind(1, node.id)
        put.bind(2, node.atMs)
        put.bind(3, node.role)
        put.bind(4, node.url)
        put.bind(5, node.advertised)
        put.bind(6, node.build)
        let positions = node.positions.map { "\($0.partition):\($0.seq)" }
        let words = (node.epoch.map { ["\($0)"] } ?? []) + positions + (node.hasLeft ? [left] : [])
        put.bind(7, words.joined(separator: " "))
    }

    static func read(_ list: Statement, since oldestMs: Int64) throws(SQLiteError) -> [NodeAnnouncement] {
        list.bind(1, oldestMs)
        var nodes: [NodeAnnouncement] = []
        while try list.step() {
            let words = list.text(5).split(separator: " ")
            var node = NodeAnnouncement(
                id: list.text(0),
                role: list.text(1),
                url: list.text(2),
                advertised: list.isNull(3) ? nil : list.text(3),
                build: list.text(4),
                epoch: words.first.flatMap { Epoch(String($0)) },
                positions: words.compactMap(position),
                atMs: list.integer(6)
            )
            node.hasLeft = words.last == left[...]
            nodes.append(node)
        }
        return nodes
    }

    private static func position(_ text: Substring) -> NodeAnnouncement.Position? {
        let parts = text.split(separator: ":")
        guard parts.count == 2, let partition = Int(parts[0]), let seq = Seq(parts[1]),
            (0..<LogTables.largestPartitionCount).contains(partition), (Seq.none...largestInteger).contains(seq)
        else { return nil }
        return NodeAnnouncement.Position(partition: partition, seq: seq)
    }
}
