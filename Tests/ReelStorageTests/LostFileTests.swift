import Foundation
import ReelClient
import ReelCore
import TestSupport
import Testing

/// Files that are removed, replaced, moved or cut under an open storage.
@Suite(.timeLimit(.minutes(5))) struct LostFileTests {
    @Test("a lost storage is noticed at the next commit", arguments: FileLoss.allCases, [1, 300])
    func aLossIsNoticed(loss: FileLoss, commits: Int) throws {
        let place = try LosableFile()
        let storage = try SQLiteStorage(path: place.path)
        // Many commits fill the WAL. SQLite then copies its pages and starts it again.
        for _ in 0..<commits {
            try storage.put((0..<10).map { "promised \($0)" }, value: Array(repeating: 1, count: 3_000))
        }
        try place.apply(loss)
        for _ in 0..<2 {
            let error = #expect(throws: ReelError.self) { try storage.put("later") }
            #expect(error?.code == .storeLost, "\(error.debugDescription)")
        }
        storage.close()
        try place.putBack(loss)
        guard loss.keepsCommits else { return }
        #expect(try SQLiteStorage(path: place.path).keys.contains("promised 9"))
    }

    @Test("a storage does not read a file that has replaced its open file")
    func anotherFileIsNotRead() throws {
        let place = try LosableFile()
        let storage = try SQLiteStorage(path: place.path)
        try storage.put("own")
        let held = try storage.snapshot()
        try place.apply(.fileRenamed)
        try SQLiteStorage(path: place.folder + "/other").put("another's")
        try FileManager.default.moveItem(atPath: place.folder + "/other", toPath: place.path)
        let error = #expect(throws: ReelError.self) { try (0..<20).map { _ in try storage.snapshot() } }
        #expect(error?.code == .storeLost)
        #expect(try held.value(for: Array("own".utf8)) == [1])
        let erasing = #expect(throws: ReelError.self) { try storage.erase() }
        #expect(erasing?.code == .storeLost, "another's file is not deleted")
        #expect(FileManager.default.fileExists(atPath: place.path))
    }

    @Test("a storage in a renamed folder that is back before the next commit is not lost")
    func aRenamedFolderThatIsBack() throws {
        let place = try LosableFile()
        let storage = try SQLiteStorage(path: place.path)
        try storage.put("1")
        try place.apply(.folderRenamed)
        try place.putBack(.folderRenamed)
        try storage.put("2")
        #expect(try storage.keys == ["1", "2"])
    }

    @Test("a storage reports the lost WAL of a killed process once, at the next start")
    func reportsALostWAL() throws {
        let (killed, copy) = (try LosableFile(), try LosableFile())
        let storage = try SQLiteStorage(path: killed.path)
        #expect(!storage.hasLostCommits, "a new file has lost nothing")
        try storage.put("1")
        // The files that a killed process leaves, without the WAL and with it.
        try FileManager.default.copyItem(atPath: killed.path, toPath: copy.path)
        do {
            let next = try SQLiteStorage(path: copy.path)
            #expect(next.hasLostCommits)
            try next.put("2")
        }
        #expect(try !SQLiteStorage(path: copy.path).hasLostCommits)
        try FileManager.default.removeItem(atPath: copy.path)
        for ending in ["", "-wal"] {
            try FileManager.default.copyItem(atPath: killed.path + ending, toPath: copy.path + ending)
        }
        let next = try SQLiteStorage(path: copy.path)
        #expect(try !next.hasLostCommits && next.keys == ["1"], "nothing is missing")
        storage.close()
        #expect(try !SQLiteStorage(path: killed.path).hasLostCommits, "a closed file needs no WAL")
    }

    @Test("a WAL without its database file is kept, and the error names it", arguments: [false, true])
    func aWALWithoutItsFile(isEmptyFileThere: Bool) throws {
        let (killed, copy) = (try LosableFile(), try LosableFile())
        let storage = try SQLiteStorage(path: killed.path)
        try storage.put("1")
        try FileManager.default.copyItem(atPath: killed.path + "-wal", toPath: copy.path + "-wal")
        if isEmptyFileThere { #expect(FileManager.default.createFile(atPath: copy.path, contents: nil)) }
        let wal = try Data(contentsOf: URL(filePath: copy.path + "-wal"))
        let error = #expect(throws: ReelError.self) { try SQLiteStorage(path: copy.path) }
        #expect(error?.code == .storeLost && error?.message.contains("-wal") == true)
        #expect(try Data(contentsOf: URL(filePath: copy.path + "-wal")) == wal)
    }

    @Test("a file whose WAL is cut after any commit contains the first commits")
    func cutAfterACommit() throws {
        let (place, copy) = (try LosableFile(), try LosableFile())
        let storage = try SQLiteStorage(path: place.path)
        for i in 0..<30 {
            try storage.put([i % 2 == 0 ? "a" : "b", "\(i + 10)"], value: Array(repeating: UInt8(i), count: 900))
        }
        let wal = try Data(contentsOf: URL(filePath: place.path + "-wal"))
        var counts: Set<Int> = []
        for end in Array(stride(from: 0, to: wal.count, by: 1_030)) + [wal.count] {
            try FileManager.default.copyItem(atPath: place.path, toPath: copy.path)
            try wal.prefix(end).write(to: URL(filePath: copy.path + "-wal"))
            let cut = try SQLiteStorage(path: copy.path)
            let numbers = try cut.keys.compactMap { Int($0) }
            #expect(numbers == (0..<numbers.count).map { $0 + 10 }, "cut at byte \(end)")
            for (key, first) in [("a", 0), ("b", 1)] where numbers.count > first {
                let last = (numbers.count - 1 - first) / 2 * 2 + first
                #expect(try cut.snapshot().value(for: Array(key.utf8))?.first == UInt8(last), "cut at byte \(end)")
            }
            counts.insert(numbers.count)
            try cut.erase()
        }
        #expect(counts.count == 31)
    }
}
