import Reel
import ReelSQLite

/// The items in a table of a SQLite file, with an index for the measured query: the floor of queries.
final class ItemTable {
    private static let window = "SELECT * FROM item WHERE done = 0 ORDER BY votes, place, id LIMIT \(BenchItem.window)"

    private let connection: Connection
    private let change: Statement

    /// Creates the file.
    ///
    /// - Parameters:
    ///   - path: the path of the file.
    ///   - count: the number of items.
    init(_ path: String, count: Int) throws {
        connection = try Connection(path: path, mode: .create)
        try connection.useWAL(.normal)
        try connection.execute(
            """
            CREATE TABLE item (id TEXT PRIMARY KEY, title TEXT, note TEXT, done INTEGER, votes INTEGER, priority REAL,
            createdAt INTEGER, label TEXT, owner TEXT, parent TEXT, place INTEGER) WITHOUT ROWID;
            CREATE INDEX open ON item (done, votes, place, id);
            """
        )
        change = try connection.prepare("UPDATE item SET place = ?, owner = ? WHERE id = ?")
        try connection.transaction { () throws(SQLiteError) in
            let insert = try connection.prepare("INSERT INTO item VALUES (?,?,?,?,?,?,?,?,?,?,?)")
            for number in 0..<count { try Self.add(BenchItem.numbered(number), insert) }
        }
        _ = try connection.checkpoint(.truncate)
    }

    private static func add(_ item: BenchItem, _ insert: Statement) throws(SQLiteError) {
        insert.bind(1, item.id.text)
        insert.bind(2, item.title)
        insert.bind(3, item.note)
        insert.bind(4, Int64(item.isDone ? 1 : 0))
        insert.bind(5, Int64(item.votes))
        insert.bind(6, item.priority)
        insert.bind(7, Int64(item.createdAt.ms))
        insert.bind(8, item.label.rawValue)
        insert.bind(9, item.owner)
        insert.bind(10, item.parent?.id.text)
        insert.bind(11, Int64(item.place))
        try insert.run()
    }

    /// Returns the rows of the measured query.
    func rows() throws -> [BenchItem] { try items(Self.window) }

    /// Returns all items.
    func all() throws -> [BenchItem] { try items("SELECT * FROM item") }

    /// Changes an item in a commit that does not wait for the disk, and returns the rows.
    func rows(afterChanging id: BenchItem.ID, place: Int) throws -> [BenchItem] {
        change.bind(1, Int64(place))
        change.bind(2, "bob")
        change.bind(3, id.text)
        try change.run()
        return try rows()
    }

    private func items(_ sql: String) throws -> [BenchItem] {
        let select = try connection.prepare(sql)
        var items: [BenchItem] = []
        while try select.step() {
            var item = BenchItem(id: ModelID(select.text(0)))
            (item.title, item.note) = (select.text(1), select.text(2))
            (item.isDone, item.votes) = (select.integer(3) != 0, Int(select.integer(4)))
            (item.priority, item.createdAt) = (select.double(5), Timestamp(ms: Int(select.integer(6))))
            (item.label, item.owner) = (BenchItem.Label(rawValue: select.text(7)) ?? .none, select.optionalText(8))
            item.parent = select.optionalText(9).map { Ref(BenchItem.ID($0)) }
            item.place = Int(select.integer(10))
            items.append(item)
        }
        return items
    }
}
