import EventLogConformance
import Foundation
import ReelCore
import ReelSQLite
import TestSupport
import Testing

@testable import ReelLog

/// Tests that each read of a row compares it with its hash, and that readers can skip damaged rows.
@Suite(.timeLimit(.minutes(5)))
struct CheckedRecordsTests {
    /// Creates a log of two partitions with `count` rows of one record each in the first one, and closes it. Returns
    /// the path.
    private func make(_ folder: String, count: Int = 10) async throws -> String {
        let path = folder + "/log.db"
        let log = try SQLiteLog(path: path, partitions: 2)
        for number in 0..<count { try await log.append(event(number, of: 1)) }
        try await log.append("apart", to: 1)
        log.close()
        return path
    }

    private func event(_ op: Int, of site: Int) -> String {
        let id = "\(site)-\(op)"
        return EventText.logged("insert", "00000000-0000-4000-8000-00000000000\(site)", op, model: "m", id: id).text
    }

    /// Changes one bit in the row of a record, as a faulty disk does. No other row changes, and no length.
    private func flip(_ path: String, _ text: String) throws {
        var bytes = try Data(contentsOf: URL(filePath: path))
        let place = try #require(bytes.range(of: Data(text.utf8), options: .backwards))
        bytes[place.lowerBound + 1] ^= 1
        try bytes.write(to: URL(filePath: path))
    }

    private func change(_ path: String, _ sql: String) throws {
        try Connection(path: path, mode: .readWrite).execute(sql)
    }

    @Test("a flipped bit in any byte of a row is found by the read of its records, which names partition and seq")
    func anyByte() async throws {
        try await withFolder { folder in
            let path = try await make(folder, count: 3)
            let log = try SQLiteLog(path: path)
            defer { log.close() }
            let file = try Connection(path: path, mode: .readWrite)
            let select = try file.prepare("SELECT records FROM records_0 WHERE last = 1")
            try #require(try select.step())
            let row = select.array(0)
            select.reset()
            for place in row.indices {
                var flipped = row
                flipped[place] ^= 1 << UInt8(place % 8)
                let update = try file.prepare("UPDATE records_0 SET records = ?1 WHERE last = 1")
                update.bind(1, flipped)
                try update.run()
                #expect(try log.read(0, from: 0, to: 9, bytes: 999).seqs == 0..<1, "what stands before it is read")
                let error = #expect(throws: LogError.self, "byte \(place)") {
                    try log.read(0, from: 1, to: 9, bytes: 999)
                }
                #expect(error?.code == .damaged)
                #expect(error?.message.hasPrefix("seq 1 of partition 0 cannot be read") == true)
                #expect(error?.message.contains("`reel epoch new --skip-damaged --from-snapshot DIR`") == true)
                #expect(try log.read(0, from: 2, to: 9, bytes: 999).seqs == 2..<3)
                #expect(try log.read(1, from: 0, to: 9, bytes: 999).seqs == 0..<1)
            }
        }
    }

    @Test(
        "a log reports a moved row or a wrong record count as damage, even with intact bytes",
        arguments: [
            "UPDATE records_0 SET last = 20 WHERE last = 9", "UPDATE records_0 SET count = 2 WHERE last = 9",
            "UPDATE records_0 SET records = (SELECT records FROM records_1) WHERE last = 9",
            "UPDATE records_0 SET records = (SELECT records FROM records_0 WHERE last = 8) WHERE last = 9",
        ]
    )
    func reportsMovedRow(_ sql: String) async throws {
        try await withFolder { folder in
            let path = try await make(folder)
            try change(path, sql)
            let log = try SQLiteLog(path: path)
            defer { log.close() }
            #expect(try log.read(0, from: 0, to: 99, bytes: 9_999).seqs == 0..<9)
            #expect(#expect(throws: LogError.self) { try log.read(0, from: 9, to: 99, bytes: 999) }?.code == .damaged)
        }
    }

    @Test(
        "a log store reports a changed value in a control row as damage",
        arguments: [
            "UPDATE log SET partitions = 1", "UPDATE log SET epoch = epoch + 1", "UPDATE control SET number = 4",
            "UPDATE control SET epoch = epoch + 1", "UPDATE deployment SET id = id + 1", "UPDATE log SET hash = NULL",
        ]
    )
    func reportsChangedControlRow(_ sql: String) async throws {
        try await withFolder { folder in
            let path = try await make(folder)
            let current = try SQLiteLogStore(path: path).current()
            #expect(current?.partitions == 2)
            try change(path, sql)
            let error = #expect(throws: LogError.self) { try SQLiteLogStore(path: path).current() }
            #expect(error?.code == .damaged, "\(error as Any)")
        }
    }

    @Test("a file of version 2 gets the hashes of its logs, and the checks of its rows hold on")
    func version2() async throws {
        try await withFolder { folder in
            let path = try await make(folder)
            let epoch = try SQLiteLogStore(path: path).current()?.epoch
            let file = try Connection(path: path, mode: .readWrite)
            let select = try file.prepare("SELECT last, records FROM records_0")
            var rows: [(last: Int64, bytes: [UInt8])] = []
            while try select.step() { rows.append((select.integer(0), select.array(1))) }
            for (last, bytes) in rows {
                let check = bytes.withUnsafeBytes { row in
                    OlderCheck.row(UnsafeRawBufferPointer(rebasing: row[8...]), partition: 0, last: last)
                }
                let update = try file.prepare("UPDATE records_0 SET records = ?1 WHERE last = ?2")
                update.bind(1, withUnsafeBytes(of: check.littleEndian) { Array($0) } + bytes[8...])
                update.bind(2, last)
                try update.run()
            }
            try file.execute(
                """
                ALTER TABLE log DROP COLUMN hash; ALTER TABLE control DROP COLUMN hash;
                ALTER TABLE deployment DROP COLUMN hash; DROP TABLE file; PRAGMA user_version = 2
                """
            )
            let log = try SQLiteLog(path: path, partitions: 2)
            defer { log.close() }
            #expect(log.epoch == epoch)
            #expect(try log.read(0, from: 0, to: 99, bytes: 9_999).seqs == 0..<10)
            try change(path, "UPDATE records_0 SET records = substr(records, 1, 30) || 'x' || substr(records, 32)")
            #expect(#expect(throws: LogError.self) { try log.read(0, from: 0, to: 9, bytes: 9) }?.code == .damaged)
        }
    }

    /// Returns the seqs and the damaged ranges that a scan finds if it skips damage.
    private func passing(_ log: SQLiteLog) throws -> (seqs: [Seq], damage: [ClosedRange<Seq>]) {
        var (seqs, damage): ([Seq], [ClosedRange<Seq>]) = ([], [])
        let last = try log.boundsPassingDamage(0).last
        try log.scan(0, from: 0, to: last, passing: { damage.append($0.seqs) }) { batch in
            seqs += batch.entries.map(\.seq)
        }
        return (seqs, damage)
    }

    @Test(
        "a scan skips damaged rows one by one, also at both ends",
        arguments: [[3], [0], [9], [2, 3, 7], [0, 1, 9]]
    )
    func skipsDamagedRows(_ numbers: [Int]) async throws {
        try await withFolder { folder in
            let path = try await make(folder)
            for number in numbers { try flip(path, #""id":"1-\#(number)""#) }
            let log = try SQLiteLog(path: path)
            defer { log.close() }
            let (seqs, damage) = try passing(log)
            #expect(seqs == (0..<10).filter { !numbers.contains(Int($0)) })
            #expect(damage.flatMap { Array($0) }.map { Int($0) } == numbers)
            #expect(throws: LogError.self) { try log.scan(0, from: 0, to: 9) { _ in } }
        }
    }

    @Test("a scan reaches the rows after a damaged page from the end")
    func reachesRowsAfterPage() async throws {
        try await withFolder { folder in
            let path = try await make(folder, count: 400)
            let file = try Connection(path: path, mode: .readWrite)
            let pages = try #require(try file.integer("SELECT rootpage FROM sqlite_schema WHERE name = 'records_0'"))
            var bytes = try Data(contentsOf: URL(filePath: path))
            // The page is a leaf in the middle of the table and contains some of the rows.
            let place = try #require(bytes.range(of: Data(#""id":"1-200""#.utf8))).lowerBound / 8_192 * 8_192
            try #require(place != (Int(pages) - 1) * 8_192)
            bytes.replaceSubrange(place..<place + 8_192, with: Data(repeating: 0xFF, count: 8_192))
            try bytes.write(to: URL(filePath: path))
            let log = try SQLiteLog(path: path)
            defer { log.close() }
            let (seqs, damage) = try passing(log)
            let lost = try #require(damage.first)
            #expect(damage.count == 1 && lost.contains(200) && lost.count < 150)
            #expect(seqs == (0..<400).filter { !lost.contains($0) })
        }
    }

    @Test("an epoch change stops at a damaged record, or skips it on request and reports the lost seqs")
    func newEpoch() async throws {
        try await withFolder { folder in
            let path = folder + "/log.db"
            let log = try SQLiteLog(path: path, partitions: 1)
            for number in 0..<6 {
                for site in 1...2 { try await log.append(event(number, of: site)) }
            }
            log.close()
            try flip(path, #""id":"1-3""#)
            let store = SQLiteLogStore(path: path)
            let error = #expect(throws: LogError.self) { try EpochChange(store).run() }
            #expect(error?.code == .damaged && error?.message.hasPrefix("seq 6 of partition 0") == true)
            #expect(try store.current()?.epoch == log.epoch)
            let plan = try EpochChange(store, skipsDamage: true).plan()
            let report = try EpochChange(store, skipsDamage: true).run()
            for report in [plan, report] {
                #expect(report.damage.map(\.range.seqs) == [6...6] && report.losses.isEmpty)
                #expect(report.damage.first?.gaps == 2, "ops 4 and 5 of the site follow none that is left")
                #expect(report.objects == 3 + 6 && report.damage.first?.isInSeeds == false)
            }
            // The state of the next epoch is complete, unless one of its seeds is damaged.
            #expect(try EpochChange(store).run().objects == 9)
            let first = "(SELECT min(last) FROM records_0_of_3)"
            try change(path, "UPDATE records_0_of_3 SET records = zeroblob(length(records)) WHERE last = \(first)")
            let lost = try EpochChange(store, skipsDamage: true).run()
            #expect(lost.damage.first?.isInSeeds == true && lost.damage.count == 1 && lost.objects == 0)
        }
    }
}
