import Foundation
import ReelCore
import ReelLog
import ReelNode
import ReelSQLite
import TestSupport
import Testing

@testable import ReelSnapshot

/// Tests which state a snapshot node keeps when one epoch follows another.
@Suite(.timeLimit(.minutes(5))) struct EpochTests {
    private let todo = StreamName("todo")!

    private func barrier(_ barrier: Barrier) -> String { String(decoding: barrier.value, as: UTF8.self) }

    private func node(_ log: MemoryLog, _ lab: Lab, number: Int = 0) throws -> SnapshotNode {
        try SnapshotNode(
            log: log,
            number: number,
            settings: lab.settings,
            logger: Logger(threshold: .error),
            metrics: Metrics()
        )
    }

    /// Folds a log of one partition that consists of this barrier, and leaves the files of the node.
    private func keep(_ value: Barrier, of log: MemoryLog, number: Int = 0, in lab: Lab) async throws {
        try await log.append([barrier(value)], key: "~reel", to: 0)
        let node = try node(log, lab, number: number)
        try await eventually("it is folded") { node.positions == [0] }
        node.close()
    }

    private func isThere(_ epoch: Epoch, _ lab: Lab) -> Bool {
        FileManager.default.fileExists(atPath: EpochFolders.path(of: epoch, in: lab.folder.path))
    }

    @Test("a snapshot node keeps the state of an ended epoch until it has folded all of the next")
    func keepsOldEpoch() async throws {
        let lab = try Lab(partitions: 2)
        let next = try MemoryLog(epoch: Epoch(0x77), partitions: 2)
        var writer = Writer(seed: 4)
        try await lab.log.append((0..<10).map { writer.event(at: Int64($0)) }, key: "todo", to: 0)
        for partition in 0..<2 { try await lab.log.append([barrier(.end(next.epoch))], key: "~reel", to: partition) }
        let first = try node(lab.log, lab)
        try await eventually("the end is folded") { first.positions == [10, 0] && first.epochHasEnded }
        #expect(first.logState == .ended)
        first.close()

        try await next.append([barrier(.open)], key: "~reel", to: 0)
        let second = try node(next, lab)
        try await eventually("partition 0 is folded") { second.positions[0] == 0 }
        #expect(isThere(lab.log.epoch, lab) && !second.epochHasEnded)
        try await next.append([barrier(.open)], key: "~reel", to: 1)
        try await eventually("the old epoch's files are gone") { !isThere(lab.log.epoch, lab) }
        second.close()
        #expect(isThere(next.epoch, lab))
    }

    @Test("an epoch that leads elsewhere, or has not ended, is kept") func otherEpochs() async throws {
        let lab = try Lab(partitions: 1)
        let (open, other) = (Epoch(0x55), Epoch(0x66))
        try await keep(.open, of: try MemoryLog(epoch: open, partitions: 1), in: lab)
        try await keep(.end(Epoch(0x99)), of: try MemoryLog(epoch: other, partitions: 1), in: lab)
        EpochFolders.removeEnded(before: lab.log.epoch, in: lab.folder.path)
        #expect(isThere(open, lab) && isThere(other, lab))
        EpochFolders.removeEnded(before: Epoch(0x99), in: lab.folder.path)
        #expect(isThere(open, lab) && !isThere(other, lab))
    }

    @Test(
        "a snapshot node keeps an epoch with partitions that have not ended or lead to different epochs",
        arguments: [false, true]
    )
    func halfEnded(hasEnded: Bool) async throws {
        let lab = try Lab(partitions: 2)
        let next = Epoch(0x77)
        try await lab.log.append([barrier(.end(next))], key: "~reel", to: 0)
        if hasEnded { try await lab.log.append([barrier(.end(Epoch(0x78)))], key: "~reel", to: 1) }
        let node = try node(lab.log, lab)
        try await eventually("all is folded") { node.positions == [0, hasEnded ? 0 : -1] }
        node.close()
        EpochFolders.removeEnded(before: next, in: lab.folder.path)
        #expect(isThere(lab.log.epoch, lab))
        EpochFolders.removeEnded(before: Epoch(0x78), in: lab.folder.path)
        #expect(isThere(lab.log.epoch, lab))
    }

    @Test("of epochs that lead nowhere the one with the highest number is what a new one begins with")
    func lostEpochs() async throws {
        let lab = try Lab(partitions: 1)
        for (number, epoch) in [Epoch(0x99), Epoch(0x11), Epoch(0x55)].enumerated() {
            try await keep(.open, of: try MemoryLog(epoch: epoch, partitions: 1), number: number, in: lab)
            let archive = try SnapshotArchive(folders: [lab.folder.path], of: nil)
            #expect(archive.epoch == epoch && archive.number == number)
        }
    }

    @Test("files that do not know the log's number give the next log one that no device stays away from")
    func unknownNumber() async throws {
        let lab = try Lab(partitions: 1)
        try await keep(.open, of: lab.log, in: lab)
        try Connection(path: lab.path(0), mode: .readWrite).execute("DELETE FROM meta WHERE name = 'number'")
        let archive = try SnapshotArchive(folders: [lab.folder.path], of: nil)
        #expect(archive.number == nil)
        let store = SQLiteLogStore(path: lab.folder.path + "/new.sqlite")
        defer { store.close() }
        #expect(try EpochChange(store, archive: archive).run().new.number > 1_000_000)
    }

    @Test("a snapshot node writes the deployment, or else the epoch, to new files and files of older builds")
    func namesDeployment() async throws {
        for named in [nil, Deployment(0x33)] {
            let lab = try Lab(partitions: 1)
            try await lab.log.append([barrier(.open)], key: "~reel", to: 0)
            for isOlder in [true, false] {
                let node = try SnapshotNode(
                    log: lab.log,
                    number: 2,
                    deployment: named,
                    settings: lab.settings,
                    logger: Logger(threshold: .error),
                    metrics: Metrics()
                )
                try await eventually("it is folded") { node.positions == [0] }
                node.close()
                let archive = try SnapshotArchive(folders: [lab.folder.path], of: nil)
                #expect(archive.deployment == named ?? Deployment(beginningWith: lab.log.epoch))
                guard isOlder else { break }
                try Connection(path: lab.path(0), mode: .readWrite).execute(
                    "DELETE FROM meta WHERE name = 'deployment'"
                )
                #expect(try SnapshotArchive(folders: [lab.folder.path], of: nil).deployment == nil)
            }
            let archive = try SnapshotArchive(folders: [lab.folder.path], of: nil)
            let store = SQLiteLogStore(path: lab.folder.path + "/new.sqlite")
            let report = try EpochChange(store, archive: archive).run()
            #expect(report.new.deployment == archive.deployment && report.deploymentIsKnown)
            #expect(try store.current()?.deployment == archive.deployment)
        }
    }

    /// A store that denies access to its current log.
    private final class ClosedStore: LogStore {
        let log: CurrentLog
        init(_ log: CurrentLog) { self.log = log }
        func current() -> CurrentLog? { log }
        func create(_ epoch: Epoch, partitions: Int) throws(LogError) { throw LogError(.internal, "nothing is made") }
        func open(_ epoch: Epoch) throws(LogError) -> any EventLog { throw LogError(.forbidden, "no right") }
        func advance(to next: CurrentLog) throws(LogError) { throw LogError(.internal, "nothing follows") }
        func close() {}
    }

    @Test("a log that one may not look into is no lost one, though there are snapshots of it")
    func forbidden() async throws {
        let lab = try Lab(partitions: 1)
        try await keep(.open, of: lab.log, in: lab)
        let archive = try SnapshotArchive(folders: [lab.folder.path], of: nil)
        let store = ClosedStore(CurrentLog(epoch: lab.log.epoch, partitions: 1, number: 0))
        let error = #expect(throws: LogError.self) { try EpochChange(store, archive: archive).run() }
        #expect(error == LogError(.forbidden, "no right"))
    }

    @Test("files of a folder that had no epochs are those of the log") func filesOfBefore() async throws {
        let lab = try Lab(partitions: 1)
        var writer = Writer(seed: 5)
        try await lab.log.append((0..<10).map { writer.event(at: Int64($0)) }, key: "todo", to: 0)
        let first = try node(lab.log, lab)
        try await lab.reach(first, 0, 9)
        first.close()
        for suffix in ["", "-wal", "-shm"] where FileManager.default.fileExists(atPath: lab.path(0) + suffix) {
            try FileManager.default.moveItem(
                atPath: lab.path(0) + suffix,
                toPath: lab.folder.path + "/partition-0.sqlite" + suffix
            )
        }
        let second = try node(lab.log, lab)
        defer { second.close() }
        try await lab.reach(second, 0, 9)
        #expect(try !FileManager.default.contentsOfDirectory(atPath: lab.folder.path).contains("partition-0.sqlite"))
        #expect(!FileManager.default.fileExists(atPath: lab.path(0) + ".aside-0"))
    }

    @Test("a new epoch begins with the highest whole state of several folders, and folds the log on from there")
    func archive() async throws {
        let (one, two) = (try Lab(partitions: 1), try Lab(partitions: 1))
        let log = one.log
        var writer = Writer(seed: 6)
        try await log.append((0..<40).map { writer.event(at: Int64($0)) }, key: "todo", to: 0)
        let first = try node(log, one)
        try await one.reach(first, 0, 39)
        first.close()
        try await log.append((40..<60).map { writer.event(at: Int64($0)) }, key: "todo", to: 0)
        let second = try node(log, two)
        try await eventually("it is folded") { second.positions == [59] }
        second.close()

        let archive = try SnapshotArchive(folders: [one.folder.path, two.folder.path], of: nil)
        #expect(archive.epoch == log.epoch && archive.partitions == 1)
        #expect(try archive.state(of: 0)?.fold.next == 60)
        // A file whose rows were removed is not used as state.
        let path = EpochFolders.file(0, in: EpochFolders.path(of: log.epoch, in: two.folder.path))
        try Connection(path: path, mode: .readWrite).execute("DELETE FROM object")
        let state = try #require(try archive.state(of: 0))
        #expect(state.fold.next == 40 && state.unread.count == 1 && state.unread[0].contains(path))

        var fold = state.fold
        try log.scan(0, from: fold.next) { batch in
            for entry in batch.entries {
                _ = batch.withRecord(entry) { fold.read(key: $0, value: $1, seq: entry.seq) }
            }
        }
        #expect(SeedSum(try #require(fold.streams[todo])) == SeedSum(try foldOfLog(log, todo, to: 59)))
        // A file that cannot be opened is an error, and does not count as missing.
        let (copy, other) = (try SnapshotArchive(folders: [two.folder.path], of: nil), one.folder.path)
        for suffix in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) }
        try String(repeating: "no database", count: 1_000).write(toFile: path, atomically: true, encoding: .utf8)
        let error = #expect(throws: SnapshotError.self) { try copy.state(of: 0) }
        #expect(error?.code == .damaged && error?.message.contains(path) == true)
        #expect(try archive.state(of: 0)?.unread.count == 1)
        try FileManager.default.removeItem(atPath: path)
        #expect(try copy.state(of: 0) == nil && archive.state(of: 0)?.unread == [])
        #expect(try SnapshotArchive(folders: [other], of: nil).state(of: 0)?.fold.next == 40)
        #expect(throws: SnapshotError.self) { try SnapshotArchive(folders: ["/nowhere"], of: nil) }
        // The folder holds no state of the log with number 9. The log with number 0 is not newer than the folder's
        // own, whose state would be lost.
        for (number, says) in [(9, "expected those of epoch"), (0, "found state of the log \(log.epoch)")] {
            let other = CurrentLog(epoch: Epoch(1), partitions: 1, number: number)
            let error = #expect(throws: SnapshotError.self) {
                try SnapshotArchive(folders: [one.folder.path], of: other)
            }
            #expect(error?.message.contains(says) == true)
        }
    }
}
