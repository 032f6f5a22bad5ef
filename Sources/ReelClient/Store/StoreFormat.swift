internal import ReelSQLite

/// The tables of a device's store, and the way from an earlier format to this one.
enum StoreFormat {
    /// The number that `user_version` of the file holds.
    static let number: Int64 = 2

    /// Marks the file as a store, in the place that SQLite has for it: "Reel".
    private static let application: Int64 = 0x5265_656C

    /// Throws an error of kind `notADatabase` if the file is another program's, or of a newer format. Changes nothing.
    static func check(_ connection: Connection) throws(SQLiteError) {
        let format = try connection.integer("PRAGMA user_version") ?? 0
        let application = try connection.integer("PRAGMA application_id") ?? 0
        let isStore =
            switch format {
            case 0: try connection.integer("SELECT count(*) FROM sqlite_schema") == 0
            case 1: try connection.integer(format1Tables) == 3
            default: application == self.application
            }
        guard isStore else {
            throw .notADatabase("found another program's tables, expected those of a device's store")
        }
        guard format <= number else {
            throw .notADatabase("found format \(format), which a newer version has written; expected up to \(number)")
        }
    }

    private static let format1Tables = "SELECT count(*) FROM sqlite_schema WHERE name IN ('stream', 'outbox', 'log')"

    /// Makes the tables that are missing. A file of format 1 keeps its streams, sites and queues; what was received
    /// comes again from a node. Inside a transaction, of a file that was checked.
    static func prepare(_ connection: Connection) throws(SQLiteError) {
        let format = try connection.integer("PRAGMA user_version") ?? 0
        if format == number { return }
        if format == 1 { try leaveFormat1(connection) }
        try connection.execute(
            """
            CREATE TABLE IF NOT EXISTS client (row INTEGER PRIMARY KEY, number INTEGER NOT NULL, user TEXT,
                deployment TEXT, in_use INTEGER NOT NULL DEFAULT 0);
            INSERT OR IGNORE INTO client (row, number) VALUES (1, 0);
            CREATE TABLE IF NOT EXISTS stream (row INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
                site TEXT NOT NULL, next_op INTEGER NOT NULL,
                epoch TEXT, partition INTEGER, partitions INTEGER, covered TEXT,
                complete INTEGER NOT NULL DEFAULT 0,
                state_seq INTEGER, state_digest INTEGER, state_head BLOB);
            CREATE TABLE IF NOT EXISTS outbox (stream INTEGER NOT NULL, number INTEGER NOT NULL,
                event BLOB NOT NULL, site TEXT, op INTEGER, first_epoch TEXT, first_seq INTEGER,
                known TEXT, waits TEXT, PRIMARY KEY (stream, number)) WITHOUT ROWID;
            CREATE TABLE IF NOT EXISTS object (stream INTEGER NOT NULL, key BLOB NOT NULL,
                value BLOB NOT NULL, PRIMARY KEY (stream, key)) WITHOUT ROWID;
            CREATE TABLE IF NOT EXISTS site (stream INTEGER NOT NULL, site TEXT NOT NULL,
                value BLOB NOT NULL, PRIMARY KEY (stream, site)) WITHOUT ROWID;
            CREATE TABLE IF NOT EXISTS event (stream INTEGER NOT NULL, seq INTEGER NOT NULL,
                value BLOB NOT NULL, PRIMARY KEY (stream, seq)) WITHOUT ROWID;
            PRAGMA application_id = \(application);
            PRAGMA user_version = \(number);
            """
        )
    }

    private static func leaveFormat1(_ connection: Connection) throws(SQLiteError) {
        try connection.execute(
            """
            CREATE TABLE client (row INTEGER PRIMARY KEY, number INTEGER NOT NULL, user TEXT, deployment TEXT,
                in_use INTEGER NOT NULL DEFAULT 0);
            INSERT INTO client (row, number) SELECT 1, ifnull(max(number), 0) FROM log;
            DROP TABLE log;
            ALTER TABLE outbox ADD COLUMN first_epoch TEXT;
            ALTER TABLE outbox ADD COLUMN first_seq INTEGER;
            ALTER TABLE outbox ADD COLUMN known TEXT;
            ALTER TABLE outbox ADD COLUMN waits TEXT;
            DROP TABLE state;
            DROP TABLE event;
            ALTER TABLE stream ADD COLUMN complete INTEGER NOT NULL DEFAULT 0;
            ALTER TABLE stream ADD COLUMN state_seq INTEGER;
            ALTER TABLE stream ADD COLUMN state_digest INTEGER;
            ALTER TABLE stream ADD COLUMN state_head BLOB;
            UPDATE stream SET partition = NULL, partitions = NULL, covered = NULL;
            """
        )
    }
}
