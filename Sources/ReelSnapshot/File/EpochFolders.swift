import Glibc
import ReelCore
import ReelSQLite

/// The folders of a snapshot node's files: one for each epoch, named by the epoch. The state of an ended epoch is kept
/// until the seeds of the next epoch are folded.
enum EpochFolders {
    /// Returns the folder of an epoch's files.
    static func path(of epoch: Epoch, in folder: String) -> String { "\(folder)/\(epoch)" }

    /// Returns the file of a partition, in the folder of its epoch.
    static func file(_ partition: Int, in epochFolder: String) -> String {
        "\(epochFolder)/partition-\(partition).sqlite"
    }

    /// Makes the folder of an epoch. Moves files of partitions from `folder` into it: an older build had no folders of
    /// epochs.
    static func make(_ epoch: Epoch, in folder: String) throws(SnapshotError) {
        let path = path(of: epoch, in: folder)
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
            throw SnapshotError(.internal, "cannot make the folder \(path): \(String(cString: strerror(errno)))")
        }
        for name in names(in: folder) where name.hasPrefix("partition-") {
            guard rename("\(folder)/\(name)", "\(path)/\(name)") == 0 else {
                throw SnapshotError(.internal, "cannot move \(folder)/\(name): \(String(cString: strerror(errno)))")
            }
        }
    }

    /// Returns the epochs that have a folder, lowest first.
    static func epochs(in folder: String) -> [Epoch] {
        names(in: folder).compactMap(Epoch.init).sorted { $0.value < $1.value }
    }

    /// Removes the folders of earlier epochs that are folded to their ends and lead to `epoch`.
    static func removeEnded(before epoch: Epoch, in folder: String) {
        var reached: Set<Epoch> = [epoch]
        var others = epochs(in: folder).filter { $0 != epoch }
        while let index = others.firstIndex(where: { following($0, in: folder).map(reached.contains) ?? false }) {
            let ended = others.remove(at: index)
            reached.insert(ended)
            let path = path(of: ended, in: folder)
            for name in names(in: path) { unlink("\(path)/\(name)") }
            rmdir(path)
        }
    }

    /// Returns the epoch that follows, if all partitions are folded to the end of this epoch.
    static func following(_ epoch: Epoch, in folder: String) -> Epoch? {
        let path = path(of: epoch, in: folder)
        var next: Epoch?
        var (partition, partitions) = (0, 1)
        while partition < partitions {
            guard let connection = try? Connection(path: file(partition, in: path), mode: .readOnly),
                let found = try? StoredPosition(reading: connection).following, next == nil || next == found,
                let count = try? StoredMeta(reading: connection)["partitions"]
            else { return nil }
            (next, partitions) = (found, Int(count))
            partition += 1
        }
        return next
    }

    /// Returns the value of `meta` in the first file of the folder that has it: `partitions`, `number` or `deployment`;
    /// nil: no file has it.
    static func meta(_ meta: String, in epochFolder: String) -> Int? {
        names(in: epochFolder).lazy.filter { $0.hasSuffix(".sqlite") }.compactMap { name in
            guard let connection = try? Connection(path: "\(epochFolder)/\(name)", mode: .readOnly)
            else {
                return nil
            }
            return try? StoredMeta(reading: connection)[meta].map { Int($0) }
        }.first
    }

    private static func names(in folder: String) -> [String] {
        guard let directory = opendir(folder) else { return [] }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }
}
