internal import Glibc
public import ReelCore
public import ReelLog
import ReelSQLite

/// The folders of snapshot nodes, as the state that a new epoch can begin with. The nodes may run meanwhile.
public final class SnapshotArchive: StateArchive {
    /// The epoch of the log that was folded.
    public let epoch: Epoch
    /// The number of partitions of that log.
    public let partitions: Int
    /// The number of logs that were the current one before that log; nil: no file records it.
    public let number: Int?
    /// The deployment of the log; nil: no file records it.
    public let deployment: Deployment?
    private let folders: [String]

    /// Finds the files of the log `current` in `folders`; nil: of the last log that has files there. Each folder is the
    /// data folder of a node, its `snapshot` folder, or a copy of that.
    ///
    /// - Throws: `bad_request` if the folders have no such files. Also if they have files of another log that is not
    ///   older than the current one, since the new epoch would omit that state.
    public init(folders: [String], of current: CurrentLog?) throws(SnapshotError) {
        let roots = folders.map { EpochFolders.epochs(in: $0 + "/snapshot").isEmpty ? $0 : $0 + "/snapshot" }
        let found = Set(roots.flatMap(EpochFolders.epochs))
        let followed = Set(
            found.filter { epoch in
                roots.contains { EpochFolders.following(epoch, in: $0).map(found.contains) ?? false }
            }
        )
        // The epoch of a lost log has no successor either. The epoch after it has the higher number.
        let numbers = Dictionary(
            uniqueKeysWithValues: found.subtracting(followed).map { epoch in
                let folders = roots.map { EpochFolders.path(of: epoch, in: $0) }
                return (epoch, folders.lazy.compactMap { EpochFolders.meta("number", in: $0) }.first ?? -1)
            }
        )
        let last = numbers.filter { $0.value == numbers.values.max() }.keys
        if let current, let other = numbers.first(where: { $0.key != current.epoch && $0.value >= current.number }) {
            throw SnapshotError(
                .badRequest,
                "found state of the log \(other.key) in \(folders.joined(separator: ", ")), expected that of the"
                    + " current log \(current.epoch) and of those before it; if the one was lost and the other begun"
                    + " without it, put the current log aside and run this again"
            )
        }
        let wanted = current?.epoch
        guard let epoch = wanted ?? (last.count == 1 ? last.first : nil), found.contains(epoch) else {
            let names = found.map(\.description).sorted().joined(separator: ", ")
            let places = folders.joined(separator: ", ")
            throw SnapshotError(
                .badRequest,
                "found \(names.isEmpty ? "no snapshots" : "snapshots of \(names)") in \(places),"
                    + " expected those of \(wanted.map { "epoch \($0)" } ?? "one epoch")"
            )
        }
        self.epoch = epoch
        self.folders = roots.map { EpochFolders.path(of: epoch, in: $0) }
        guard let partitions = self.folders.lazy.compactMap({ EpochFolders.meta("partitions", in: $0) }).first else {
            throw SnapshotError(.badRequest, "found no partition's file of epoch \(epoch)")
        }
        self.partitions = partitions
        number = self.folders.lazy.compactMap { EpochFolders.meta("number", in: $0) }.first
        deployment = self.folders.lazy.compactMap { EpochFolders.meta("deployment", in: $0) }.first
            .map { Deployment(UInt64(bitPattern: Int64($0))) }
    }

    /// Returns the epochs that have state in a node's `snapshot` folder, lowest epoch first.
    public static func epochs(in folder: String) -> [Epoch] { EpochFolders.epochs(in: folder) }

    /// Returns the most advanced state of a partition among the files that hold all streams with their digests.
    public func state(of partition: Int) throws -> ArchivedState? {
        let identity = SnapshotFile.Identity(epoch: epoch, partition: partition, partitions: partitions)
        var (known, unread) = ([(file: String, next: Seq)](), [String]())
        func tried<R>(_ file: String, _ body: () throws -> R?) -> R? {
            do {
                return try body()
            } catch {
                unread.append("\(file) cannot be read: \((error as? SnapshotFile.Unusable)?.reason ?? "\(error)")")
                return nil
            }
        }
        for file in folders.map({ EpochFolders.file(partition, in: $0) }) {
            if let next = tried(file, { try Self.position(of: file)?.next }) { known.append((file, next)) }
        }
        for (file, _) in known.sorted(by: { $0.next > $1.next }) {
            guard var state = tried(file, { try Self.state(of: identity, in: file) }) else { continue }
            state.unread = unread
            return state
        }
        guard unread.isEmpty else { throw SnapshotError(.damaged, unread.joined(separator: "; ")) }
        return nil
    }

    /// Returns the last seq of a partition that any folder has read; streams that wait may be folded less far. Nil: no
    /// file can be read.
    public func furthest(_ partition: Int) -> Seq? {
        folders.compactMap { try? Self.position(of: EpochFolders.file(partition, in: $0))?.read }.max().map { $0 - 1 }
    }

    /// Returns the position of a file; nil: there is no file, or it has no state yet.
    private static func position(of file: String) throws -> StoredPosition? {
        if access(file, F_OK) != 0, errno == ENOENT { return nil }
        let position = try StoredPosition(reading: try Connection(path: file, mode: .readOnly))
        return position.isInsideSeeds ? nil : position
    }

    /// Returns all streams of a file, in one consistent read.
    private static func state(of identity: SnapshotFile.Identity, in file: String) throws -> ArchivedState {
        let connection = try Connection(path: file, mode: .readOnly)
        try connection.beginRead()
        defer { connection.rollback() }
        try SnapshotFile.verify(connection, identity)
        let position = try StoredPosition(reading: connection)
        var fold = PartitionFold(
            partition: identity.partition,
            of: identity.partitions,
            epoch: identity.epoch,
            next: position.next,
            // The waiting records precede the end of the epoch.
            phase: position.waiting.isEmpty ? position.phase : .open
        )
        let names = try connection.prepare("SELECT name FROM stream NOT INDEXED")
        while try names.step() {
            guard let name = StreamName(names.text(0)),
                let stored = try StoredStream(
                    name,
                    identity: identity,
                    seq: position.of(name).seq,
                    in: connection,
                    format: position.format
                )
            else { throw SnapshotFile.Unusable(reason: "found a stream without a valid name") }
            fold.add(stored.fold)
        }
        return ArchivedState(fold: fold, last: position.last)
    }
}
