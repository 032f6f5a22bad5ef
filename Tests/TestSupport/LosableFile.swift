import Foundation

/// A change that takes a database file, or the WAL beside it, away from a process that has it open.
package enum FileLoss: String, CaseIterable, Sendable {
    case bothFilesRemoved, fileRemoved, walRemoved, folderRemoved, folderRenamed, fileRenamed, fileReplacedByACopy
    case fileReplacedByAnEmptyOne, walReplacedByACopy, fileCut, walCut, linkPointsElsewhere

    /// True if all durable commits can be read once `LosableFile.putBack` was called.
    package var keepsCommits: Bool {
        switch self {
        case .walRemoved, .folderRenamed, .fileRenamed, .fileReplacedByACopy, .walReplacedByACopy,
            .linkPointsElsewhere:
            true
        default: false
        }
    }
}

/// The place of a database file: a new folder, and a link to the folder through which the file is opened. Both are
/// removed at the end.
package final class LosableFile: Sendable {
    /// The folder itself.
    package let folder: String
    /// The path of the file, through the link. The file does not exist yet.
    package let path: String
    private let link: String

    /// Creates the folder and the link.
    package init() throws {
        let top = FileManager.default.temporaryDirectory.appendingPathComponent("reel-lost-\(UUID().uuidString)").path
        (folder, link) = (top + ".folder", top + ".link")
        path = link + "/store.reel"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: folder)
    }

    deinit {
        for path in [folder, link, folder + ".moved", folder + ".other"] {
            try? FileManager.default.removeItem(atPath: path)
        }
    }

    /// Makes the change.
    package func apply(_ loss: FileLoss) throws {
        let (files, wal) = (FileManager.default, path + "-wal")
        switch loss {
        case .bothFilesRemoved: for path in [path, wal] { try files.removeItem(atPath: path) }
        case .fileRemoved: try files.removeItem(atPath: path)
        case .walRemoved: try files.removeItem(atPath: wal)
        case .folderRemoved: try files.removeItem(atPath: folder)
        case .folderRenamed: try files.moveItem(atPath: folder, toPath: folder + ".moved")
        case .fileRenamed: try files.moveItem(atPath: path, toPath: path + ".moved")
        case .fileReplacedByACopy: try replaceByACopy(path)
        case .walReplacedByACopy: try replaceByACopy(wal)
        case .fileReplacedByAnEmptyOne:
            try files.removeItem(atPath: path)
            try Data().write(to: URL(fileURLWithPath: path))
        case .fileCut: try FileHandle(forWritingTo: URL(fileURLWithPath: path)).truncate(atOffset: 0)
        case .walCut: try FileHandle(forWritingTo: URL(fileURLWithPath: wal)).truncate(atOffset: 40)
        case .linkPointsElsewhere:
            try files.createDirectory(atPath: folder + ".other", withIntermediateDirectories: false)
            try files.removeItem(atPath: link)
            try files.createSymbolicLink(atPath: link, withDestinationPath: folder + ".other")
        }
    }

    /// Undoes a renaming, or a change of the link. Any other change stays.
    package func putBack(_ loss: FileLoss) throws {
        let files = FileManager.default
        switch loss {
        case .folderRenamed: try files.moveItem(atPath: folder + ".moved", toPath: folder)
        case .fileRenamed: try files.moveItem(atPath: path + ".moved", toPath: path)
        case .linkPointsElsewhere:
            try files.removeItem(atPath: link)
            try files.createSymbolicLink(atPath: link, withDestinationPath: folder)
        default: break
        }
    }

    private func replaceByACopy(_ path: String) throws {
        try FileManager.default.copyItem(atPath: path, toPath: path + ".copy")
        try FileManager.default.removeItem(atPath: path)
        try FileManager.default.moveItem(atPath: path + ".copy", toPath: path)
    }
}
