import Foundation
import ReelCore
import ReelSQLite
import TestSupport
import Testing

@testable import ReelClient

/// Files that are not a storage, files that this user or this version cannot use, damaged files, and shrinking files.
@Suite(.timeLimit(.minutes(5))) struct SQLiteFileTests {
    private let folder: Folder
    private let path: String

    init() throws {
        folder = try Folder()
        path = folder.freshPath
    }

    @Test("an empty file becomes a new storage")
    func anEmptyFile() throws {
        #expect(FileManager.default.createFile(atPath: path, contents: nil))
        try SQLiteStorage(path: path).put("a")
        #expect(try SQLiteStorage(path: path).keys == ["a"])
    }

    @Test("a closed storage is one file")
    func oneFile() throws {
        let storage = try SQLiteStorage(path: path)
        try storage.put("a")
        let snapshot = try storage.snapshot()
        #expect(folder.names.count == 4, "the file, -wal, -shm and -lock")
        storage.close()
        #expect(folder.names.count == 1)
        withExtendedLifetime(snapshot) {}
    }

    @Test("an erased storage leaves no file, also if its path is a link")
    func erasedFiles() throws {
        let link = folder.path + "/link"
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
        try SQLiteStorage(path: path).put("a")
        let storage = try SQLiteStorage(path: link)
        #expect(try storage.keys == ["a"])
        try storage.erase()
        #expect(folder.names.isEmpty)
    }

    @Test("a storage without references closes its file, and a snapshot counts as a reference")
    func endsWithItsLastReference() throws {
        var snapshot: (any StorageSnapshot)?
        do {
            let storage = try SQLiteStorage(path: path)
            try storage.put("a")
            snapshot = try storage.snapshot()
        }
        #expect(try snapshot?.value(for: Array("a".utf8)) == [1])
        expect(.storeBusy, from: path)
        snapshot = nil
        #expect(try SQLiteStorage(path: path).keys == ["a"])
    }

    @Test("a storage does not change another program's file")
    func anotherProgramsFile() throws {
        for content in [Data("a letter".utf8), Data(repeating: 7, count: 9_000)] {
            try content.write(to: URL(filePath: path))
            expect(.storeFormat, from: path)
            #expect(try Data(contentsOf: URL(filePath: path)) == content)
        }
        for format in [-1, 0, 1, 2, 4, 7] {
            let database = folder.freshPath
            try Connection(path: database, mode: .create).execute(
                "CREATE TABLE stream (x); PRAGMA user_version = \(format)"
            )
            let before = try Data(contentsOf: URL(filePath: database))
            expect(.storeFormat, from: database)
            #expect(try Data(contentsOf: URL(filePath: database)) == before)
            #expect(!FileManager.default.fileExists(atPath: database + "-lock"))
        }
    }

    @Test("a storage does not change a file of a newer format, and the error names both formats")
    func aNewerFormat() throws {
        try SQLiteStorage(path: path).put("a")
        try Connection(path: path, mode: .readWrite).execute("PRAGMA user_version = \(StorageFormat.number + 1)")
        let error = expect(.storeFormat, from: path)
        #expect(error?.message.contains("found format \(StorageFormat.number + 1)") == true)
        #expect(error?.message.contains("expected up to \(StorageFormat.number)") == true)
    }

    @Test(
        "an unusable path is an error at once",
        arguments: ["", "/nowhere/at/all/a.reel", "/dev/null", "/usr", "/dev/null/a.reel", "a\0b"]
    )
    func unusablePath(path: String) {
        expect(.storeFailed, from: path)
    }

    @Test(
        "a file or a folder that this user may not write to is an error at once",
        .enabled(if: getuid() == 0 && Writer.hasSetpriv, "setpriv or the rights of root are missing: run as root")
    )
    func readOnly() throws {
        let files = FileManager.default
        try SQLiteStorage(path: path).put("a")
        try files.setAttributes([.posixPermissions: 0o777], ofItemAtPath: folder.path)
        try files.setAttributes([.posixPermissions: 0o444], ofItemAtPath: path)
        #expect(try Writer.run(path, from: 1, count: 1, user: "65534").text == "store_failed\n")
        try files.setAttributes([.posixPermissions: 0o666], ofItemAtPath: path)
        try files.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder.path)
        #expect(try Writer.run(path, from: 1, count: 1, user: "65534").text == "store_failed\n")
        try files.setAttributes([.posixPermissions: 0o777], ofItemAtPath: folder.path)
        #expect(try Writer.run(path, from: 1, count: 1, user: "65534").text.hasSuffix("closed\n"))
    }

    @Test("two clients of one process cannot open one file at the same time, under any of its names")
    func twoClients() throws {
        let (files, link, name) = (FileManager.default, folder.path + "/link", folder.path + "/name")
        let storage = try SQLiteStorage(path: path)
        try files.createSymbolicLink(atPath: link, withDestinationPath: path)
        try files.linkItem(atPath: path, toPath: name)
        for path in [path, link, name] { expect(.storeBusy, from: path) }
        // The lock file alone is not the lock.
        try files.removeItem(atPath: path + "-lock")
        expect(.storeBusy, from: path)
        try storage.put("a")
        storage.close()
        #expect(try SQLiteStorage(path: link).keys == ["a"])
    }

    @Test("damaged bytes of a file never cause a trap, and damage of its structure is an error")
    func damagedBytes() throws {
        do {
            let storage = try SQLiteStorage(path: path)
            for i in 0..<40 {
                try storage.put((0..<20).map { "key \(i * 20 + $0)" }, value: Array(repeating: 7, count: 60 * i))
            }
        }
        let whole = try Data(contentsOf: URL(filePath: path))
        var errors = 0
        for seed in 0..<UInt64(150 * effort) {
            var random = SeededNumbers(seed)
            let copy = folder.freshPath
            var bytes = whole
            for _ in 0..<Int.random(in: 1...40, using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            // This copy ends too early.
            if random.oneIn(4) { bytes = bytes.prefix(Int.random(in: 0..<bytes.count, using: &random)) }
            try bytes.write(to: URL(filePath: copy))
            do throws(ReelError) {
                let storage = try SQLiteStorage(path: copy)
                var changes = StorageChanges()
                changes.put([1], [1])
                changes.removeRange(from: Array("key 3".utf8), to: Array("key 5".utf8))
                var last: [UInt8] = []
                try storage.snapshot().forEach(from: [], to: [0xFF]) { key, _ throws(ReelError) in
                    #expect(last.isEmpty || KeyOrder.precedes(last, Array(key)), "seed \(seed)")
                    last = Array(key)
                    return true
                }
                try storage.commit(changes, durably: true)
                storage.close()
            } catch {
                errors += 1
                #expect(error.code.rawValue.hasPrefix("store_"), "seed \(seed): \(error)")
            }
        }
        #expect(errors > 20)
    }

    @Test("a file that was cut within a page or between pages is damaged", arguments: [1, 4_000, 4_096, 9_000])
    func cutFile(bytes: Int64) throws {
        let storage = try SQLiteStorage(path: path)
        for i in 0..<20 { try storage.put(["key \(i)"], value: Array(repeating: 7, count: 4_000)) }
        storage.close()
        #expect(truncate(path, Int(try size() - bytes)) == 0)
        let error = expect(.storeDamaged, from: path)
        #expect(error?.message.contains(path) == true)
    }

    @Test("a pair that is not a pair of blobs is damage, and so is a missing table")
    func wrongTypes() throws {
        for change in [
            "UPDATE pair SET value = 5", "UPDATE pair SET key = 'text'", "DROP TABLE pair", "DROP TABLE mark",
        ] {
            let path = folder.freshPath
            try SQLiteStorage(path: path).put("a")
            try Connection(path: path, mode: .readWrite).execute(change)
            let error = #expect(throws: ReelError.self, "\(change)") {
                let snapshot = try SQLiteStorage(path: path).snapshot()
                try snapshot.forEach(from: [], to: [0xFF]) { _, _ in true }
                if try snapshot.value(for: Array("a".utf8)) == nil { throw ReelError(.storeDamaged, "the key is gone") }
            }
            #expect(error?.code == .storeDamaged, "\(change)")
        }
    }

    @Test("a storage refuses a commit for which there is no space, and may accept the next one")
    func noRoom() throws {
        let storage = try SQLiteStorage(path: path)
        try storage.put("a")
        let tooLarge = StorageChanges.puts(["b"], Array(repeating: 1, count: 1_000_000_001))
        #expect(throws: ReelError.self) { try storage.commit(tooLarge, durably: true) }
        try storage.put("c")
        #expect(try storage.keys == ["a", "c"])
    }

    @Test("a file becomes smaller in small steps when most of its content is removed")
    func shrinks() throws {
        let storage = try SQLiteStorage(path: path)
        for i in 0..<40 {
            try storage.put((0..<100).map { "key \(i * 100 + $0)" }, value: Array(repeating: 7, count: 4_000))
        }
        let large = try size()
        var changes = StorageChanges()
        changes.removeRange(from: Array("key 1".utf8), to: [0xFF])
        try storage.commit(changes, durably: false)
        // Each commit frees some pages. More commits than these are a fault.
        for i in 0..<4_000 where try size() > large / 8 { try storage.put("a \(i)") }
        #expect(try size() <= large / 8)
        #expect(try storage.keys.contains("key 0"))
        storage.close()
        #expect(try Connection(path: path, mode: .readOnly).text("PRAGMA integrity_check") == "ok")
    }

    private func size() throws -> Int64 { try #require(FileLook(path)).size }

    @discardableResult
    private func expect(_ code: ErrorCode, from path: String) -> ReelError? {
        let error = #expect(throws: ReelError.self) { try SQLiteStorage(path: path) }
        #expect(error?.code == code, "\(error.debugDescription)")
        return error
    }
}
