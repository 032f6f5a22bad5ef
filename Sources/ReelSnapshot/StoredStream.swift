import ReelCore
import ReelSQLite

/// A stream as it lies in a partition's file, read back into a fold.
struct StoredStream {
    /// The stream's number in the file.
    let id: Int64
    var fold: Fold

    /// Reads a stream whole, as of `seq`, the position of the file; nil if nobody wrote to it yet. Throws `Unusable`
    /// where the rows are not what was written.
    init?(
        _ name: StreamName,
        identity: SnapshotFile.Identity,
        seq: Seq,
        in connection: Connection,
        listsChanges: Bool = false
    ) throws {
        guard
            var rows = try Rows(name, identity: identity, seq: seq, in: connection, listsChanges: listsChanges)
        else { return nil }
        id = rows.id
        let objects = try connection.prepare("SELECT key, data FROM object WHERE stream = ?")
        objects.bind(1, id)
        while try objects.step() {
            try rows.loader.add(objectKey: objects.bytes(0), row: objects.bytes(1))
        }
        fold = rows.loader.finish()
        let found = fold.digest()
        guard found == rows.digest else {
            throw SnapshotFile.Unusable(reason: "the rows of stream \(name) do not have the digest written with them")
        }
    }

    /// Reads a stream without its objects, as of `seq`, the position of the file; nil if nobody wrote to it yet. The
    /// digest, which covers the objects, is not compared.
    init?(sitesOf name: StreamName, identity: SnapshotFile.Identity, seq: Seq, in connection: Connection) throws {
        guard let rows = try Rows(name, identity: identity, seq: seq, in: connection, listsChanges: false) else {
            return nil
        }
        id = rows.id
        fold = rows.loader.finish()
    }

    /// What the file holds of a stream besides its objects.
    private struct Rows {
        let id: Int64
        let digest: UInt64
        var loader: FoldLoader

        init?(
            _ name: StreamName,
            identity: SnapshotFile.Identity,
            seq: Seq,
            in connection: Connection,
            listsChanges: Bool
        ) throws {
            let find = try connection.prepare("SELECT id, head, digest FROM stream WHERE name = ?")
            find.bind(1, name.description)
            guard try find.step() else { return nil }
            id = find.integer(0)
            digest = UInt64(bitPattern: find.integer(2))
            loader = try FoldLoader(
                stream: name,
                partition: identity.partition,
                epoch: identity.epoch,
                seq: seq,
                head: find.bytes(1),
                listsChanges: listsChanges
            )
            let sites = try connection.prepare("SELECT key, data FROM site WHERE stream = ?")
            sites.bind(1, id)
            while try sites.step() {
                guard let site = StoredStream.site(of: sites.bytes(0)) else {
                    throw SnapshotFile.Unusable(reason: "found a site's key that is no UUID in stream \(name)")
                }
                try loader.add(site: site, row: sites.bytes(1))
            }
        }
    }

    /// The number of a stream; nil if nobody wrote to it yet.
    static func id(of name: StreamName, in connection: Connection) throws(SQLiteError) -> Int64? {
        let find = try connection.prepare("SELECT id FROM stream WHERE name = ?")
        find.bind(1, name.description)
        return try find.step() ? find.integer(0) : nil
    }

    /// An object as a row's key: model, a zero byte, id, as they stand between the quotes of canonical JSON.
    static func key(model: String, id: String) -> [UInt8] {
        var key: [UInt8] = []
        key.append(quoted: model)
        key[0] = 0
        key[key.count - 1] = 0
        key.removeFirst()
        var quoted: [UInt8] = []
        quoted.append(quoted: id)
        return key + quoted.dropFirst().dropLast()
    }

    /// A site as a row's key: the sixteen bytes of the UUID.
    static func key(of site: Site) -> [UInt8] {
        withUnsafeBytes(of: (site.high.bigEndian, site.low.bigEndian)) { Array($0) }
    }

    private static func site(of key: Bytes) -> Site? {
        guard key.count == 16 else { return nil }
        return Site(
            high: UInt64(bigEndian: key.loadUnaligned(as: UInt64.self)),
            low: UInt64(bigEndian: key.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        )
    }
}
