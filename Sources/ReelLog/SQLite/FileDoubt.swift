/// A reason why a log's file may lack records that it had before. The file stores the doubt until an operator settles
/// it.
enum FileDoubt: String, Sendable {
    /// The file has another identity than the one stored when it was last opened.
    case copied
    /// The file has a lower count of closings than the lock file next to it.
    case rolledBack = "rolled_back"
    /// The file was not closed, and its `-wal` is missing.
    case withoutWAL = "without_wal"

    /// The finding in words.
    var finding: String {
        switch self {
        case .copied:
            "the log's file is not the one that it was before: it was copied, or restored from a backup"
        case .rolledBack:
            "the log's file is older than when it was last closed: a backup was restored into it"
        case .withoutWAL:
            "the log's file was not closed in good order, and its -wal, which holds the last records, was missing"
        }
    }

    /// The finding and the advice, in one sentence.
    var notice: String {
        finding + "; if records may be missing, run `reel epoch new --from-snapshot DIR` with the data folder of the"
            + " snapshot node that is furthest, or without the option where none is further; if the file is whole, run"
            + " `reel log accept`"
    }
}
