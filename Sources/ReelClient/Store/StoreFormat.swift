internal import ReelSQLite

/// The tables of a device's store, and the migration from earlier formats.
enum StoreFormat {
    /// The format's number, in `user_version` of the file.
    static let number: Int64 = 3

    /// The `application_id` that marks the file as a store: "Reel".
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

    /// Creates the missing tables. A file of an earlier format keeps its streams, sites and queues; received data is
    /// read again from a node. Call it inside a transaction, after `check`.
    static func prepare(_ connection: Connection) throws(SQLiteError) {
        let format = try connection.integer("PRAGMA user_version") ?? 0
        if format == number { return }
        if format == 1 { try leaveFormat1(connection) }
        if format == 1 || format == 2 { try addHashes(connection) }
        try connection.execute(
            """
            CREATE TABLE IF NOT EXISTS client (row INTEGER PRIMARY KEY, number INTEGER NOT NULL, user TEXT,
                deployment TEXT, in_use INTEGER NOT NULL DEFAULT 0, hash INTEGER NOT NULL);
            INSERT OR IGNORE INTO client (row, number, hash)
                VALUES (1, 0, \(StoreRowHash.client(number: 0, user: nil, deployment: nil)));
            CREATE TABLE IF NOT EXISTS stream (row INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
                site TEXT NOT NULL, next_op INTEGER NOT NULL,
                epoch TEXT, partition INTEGER, partitions INTEGER, covered TEXT,
                complete INTEGER NOT NULL DEFAULT 0,
                state_seq INTEGER, state_digest INTEGER, state_head BLOB,
                site_hash INTEGER NOT NULL, position_hash INTEGER, state_hash INTEGER);
            CREATE TABLE IF NOT EXISTS outbox (stream INTEGER NOT NULL, number INTEGER NOT NULL,
                event BLOB NOT NULL, site TEXT, op INTEGER, first_epoch TEXT, first_seq INTEGER,
                known TEXT, waits TEXT, hash INTEGER NOT NULL, PRIMARY KEY (stream, number)) WITHOUT ROWID;
            CREATE TABLE IF NOT EXISTS object (stream INTEGER NOT NULL, key BLOB NOT NULL,
                value BLOB NOT NULL, hash INTEGER NOT NULL, PRIMARY KEY (stream, key)) WITHOUT ROWID;
            CREATE TABLE IF NOT EXISTS site (stream INTEGER NOT NULL, site TEXT NOT NULL,
                value BLOB NOT NULL, hash INTEGER NOT NULL, PRIMARY KEY (stream, site)) WITHOUT ROWID;
            CREATE TABLE IF NOT EXISTS event (stream INTEGER NOT NULL, seq INTEGER NOT NULL,
                value BLOB NOT NULL, hash INTEGER NOT NULL, PRIMARY KEY (stream, seq)) WITHOUT ROWID;
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
            ALTER TABLE stream ADD COLUMN complete INTEGER NOT NULL DEFAULT 0;
            ALTER TABLE stream ADD COLUMN state_seq INTEGER;
            ALTER TABLE stream ADD COLUMN state_digest INTEGER;
            ALTER TABLE stream ADD COLUMN state_head BLOB;
            """
        )
    }

    /// Adds the hashes to a file of format 2, whose rows had none, and drops the received data.
    private static func addHashes(_ connection: Connection) throws(SQLiteError) {
        try connection.execute(
            """
            DROP TABLE IF EXISTS object;
            DROP TABLE IF EXISTS site;
            DROP TABLE event;
            UPDATE stream SET partition = NULL, partitions = NULL, covered = NULL,
                state_seq = NULL, state_digest = NULL, state_head = NULL;
            ALTER TABLE client ADD COLUMN hash INTEGER NOT NULL DEFAULT 0;
            ALTER TABLE stream ADD COLUMN site_hash INTEGER NOT NULL DEFAULT 0;
            ALTER TABLE stream ADD COLUMN position_hash INTEGER;
            ALTER TABLE stream ADD COLUMN state_hash INTEGER;
            ALTER TABLE outbox ADD COLUMN hash INTEGER NOT NULL DEFAULT 0;
            """
        )
        let client = try connection.prepare("SELECT number, user, deployment FROM client WHERE row = 1")
        if try client.step() {
            let (user, deployment) = (client.optionalText(1), client.optionalText(2))
            let hash = StoreRowHash.client(number: client.integer(0), user: user, deployment: deployment)
            client.reset()
            try connection.execute("UPDATE client SET hash = \(hash)")
        }
        let streams = try connection.prepare("SELECT row, name, site, next_op FROM stream")
        while try streams.step() {
            let hash = StoreRowHash.site(of: streams.text(1), streams.text(2), nextOp: streams.integer(3))
            try connection.execute("UPDATE stream SET site_hash = \(hash) WHERE row = \(streams.integer(0))")
        }
        try DeviceStore.rehashEntries(of: connection, where: "true") { _, _, _ in }
    }
}
