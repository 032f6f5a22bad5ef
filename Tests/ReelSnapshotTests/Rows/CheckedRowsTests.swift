import Foundation
import ReelCore
import ReelLog
import ReelNode
import ReelSQLite
import TestSupport
import Testing

@testable import ReelSnapshot

/// Tests that each read compares the rows that it uses with their hashes.
@Suite(.timeLimit(.minutes(5)))
struct CheckedRowsTests {
    @Test("a flipped byte in an object's row is found by the read of that object, and by no read of another")
    func object() async throws {
        let stored = try await StoredFile()
        let row = try stored.objectRow("key = x'6d007461736b'")
        let data = try stored.places(of: row).dropFirst(row[0].count)
        let other = try #require(try stored.reader.object(of: StoredFile.notes, model: "m", id: "o3"))
        for place in data {
            try stored.flipping(place) { () throws in
                #expect(throws: StateReader.Damage.self, "byte \(place)") {
                    try stored.reader.object(of: StoredFile.todo, model: "m", id: "task")
                }
                #expect(try stored.reader.object(of: StoredFile.notes, model: "m", id: "o3") == other)
                #expect(try stored.reader.seq(of: StoredFile.todo) == 89)
            }
        }
        let title = try #require(try stored.reader.object(of: StoredFile.todo, model: "m", id: "task"))
        #expect(String(decoding: title.json, as: UTF8.self).contains("Task 7777"))
    }

    @Test("an object that a flipped byte in its key has hidden is damage, not an object that is missing")
    func key() async throws {
        let stored = try await StoredFile()
        let row = try stored.objectRow("key = x'6d007461736b'")
        for place in try stored.places(of: row).prefix(row[0].count) {
            for bit in 0..<8 {
                try stored.flipping(place, by: 1 << bit) { () throws in
                    #expect(throws: StateReader.Damage.self, "byte \(place), bit \(bit)") {
                        try stored.reader.object(of: StoredFile.todo, model: "m", id: "task")
                    }
                }
            }
        }
        #expect(try stored.reader.object(of: StoredFile.todo, model: "m", id: "none") == nil)
    }

    @Test("a flipped byte in the history of a text is found, which the digest does not cover")
    func history() async throws {
        let stored = try await StoredFile()
        // The row of an object with a spliced text; the text's history follows the text in the row.
        let row = try stored.objectRow("instr(data, x'c3a9') ORDER BY length(data) DESC")
        let name = String(decoding: row[0].drop { $0 != 0 }.dropFirst(), as: UTF8.self)
        let streams = [StoredFile.todo, StoredFile.notes].filter {
            (try? stored.reader.object(of: $0, model: "m", id: name)) != nil
        }
        var found = 0
        for place in try stored.places(of: row).dropFirst(row[0].count) {
            try stored.flipping(place) { () throws in
                let damaged = streams.filter { stream in
                    (try? stored.reader.lines(of: stream, after: .none)) == nil
                }
                if damaged.count == 1 { found += 1 }
            }
        }
        #expect(found == row.dropFirst().joined().count)
    }

    @Test("a flipped byte in a site's row is found by the read of the sites", arguments: [0, 1, 2])
    func siteRow(part: Int) async throws {
        let stored = try await StoredFile()
        let row = try stored.row("SELECT key, data, hash FROM site ORDER BY length(data) DESC LIMIT 1", columns: 3)
        let places = try stored.places(of: row)
        let start = row[..<part].joined().count
        for place in places[start..<(start + row[part].count)] {
            try stored.flipping(place) { () throws in
                let read = [StoredFile.todo, StoredFile.notes].filter {
                    (try? stored.reader.sites(of: $0, after: .none, limit: 10)) == nil
                }
                #expect(!read.isEmpty, "byte \(place)")
                // A read of a single object does not use the rows of the sites.
                #expect(try stored.reader.object(of: StoredFile.todo, model: "m", id: "task") != nil)
            }
        }
    }

    @Test("a flipped byte in a chunk of events is found by the page and the outcome that it holds")
    func events() async throws {
        let stored = try await StoredFile()
        let query =
            "SELECT data, hash FROM event WHERE stream = (SELECT id FROM stream WHERE name = 'todo') ORDER BY last"
        let row = try stored.row(query, columns: 2)
        let ack = ServerFrame.Acked(site: Site(StoredFile.site)!, op: 0, seq: 0)
        #expect(try stored.reader.outcomes(of: [ack], in: StoredFile.todo).map(\.outcome) == [.applied])
        for place in try stored.places(of: row) {
            try stored.flipping(place) { () throws in
                #expect(throws: StateReader.Damage.self, "byte \(place)") {
                    try stored.reader.page(of: StoredFile.todo, after: .none, limit: 1_000)
                }
                #expect(throws: StateReader.Damage.self, "byte \(place)") {
                    try stored.reader.outcomes(of: [ack], in: StoredFile.todo)
                }
                #expect(try stored.reader.page(of: StoredFile.notes, after: 88, limit: 1_000).chunk.to == 89)
                #expect(try stored.reader.object(of: StoredFile.todo, model: "m", id: "task") != nil)
            }
        }
    }

    @Test("a flipped byte in a barrier of the index is found by the page that it belongs to")
    func barrier() async throws {
        let stored = try await StoredFile()
        let row = try stored.row("SELECT data, hash FROM event WHERE stream = 0 ORDER BY last", columns: 2)
        for place in try stored.places(of: row) {
            try stored.flipping(place) { () throws in
                #expect(throws: StateReader.Damage.self, "byte \(place)") {
                    try stored.reader.page(of: StoredFile.notes, after: 0, limit: 1_000)
                }
            }
        }
    }

    @Test("a flipped byte in a stream's row is found by each read of that stream, and by no read of another")
    func head() async throws {
        let stored = try await StoredFile()
        let row = try stored.row("SELECT name, head, hash FROM stream WHERE name = 'todo'", columns: 3)
        // The digest, the number of sites and the last event are between head and hash.
        let digest = try stored.row("SELECT digest FROM stream WHERE name = 'todo'", columns: 1)[0]
        let numbers = try Connection(path: stored.lab.path(0), mode: .readOnly)
            .prepare("SELECT sites, event FROM stream WHERE name = 'todo'")
        try #require(try numbers.step())
        let between = digest + [UInt8(numbers.integer(0)), UInt8(numbers.integer(1))]
        let places = try stored.places(of: [row[0], row[1], between, row[2]])
        for place in places.prefix(row[0].count) {
            // The index, by which reads find the row, still has the right name. The file is refused when it is
            // opened, because the names differ.
            try stored.flipping(place) { () throws in
                #expect(throws: SnapshotFile.Unusable.self, "byte \(place)") {
                    try SnapshotFile(path: stored.lab.path(0), identity: stored.lab.identity(0))
                }
            }
        }
        for place in places.dropFirst(row[0].count) {
            try stored.flipping(place) { () throws in
                #expect(throws: StateReader.Damage.self, "byte \(place)") {
                    try stored.reader.object(of: StoredFile.todo, model: "m", id: "task")
                }
                #expect(try stored.reader.object(of: StoredFile.notes, model: "m", id: "o3") != nil)
            }
        }
    }

    @Test("every read finds a flipped byte in the metadata of the file")
    func flippedMetadataByte() async throws {
        let stored = try await StoredFile()
        for name in [
            "barrier", "epoch", "format", "hash", "index", "last", "next", "number", "partition", "partitions", "phase",
        ] {
            let file = try Connection(path: stored.lab.path(0), mode: .readOnly)
            let row = try file.prepare("SELECT name, hash FROM meta WHERE name = '\(name)'")
            try #require(try row.step())
            let hash = withUnsafeBytes(of: row.integer(1).bigEndian) { Data($0) }
            let end = try #require(stored.bytes.range(of: hash, options: .backwards)).upperBound
            let start = try #require(stored.bytes[..<end].range(of: Data(row.array(0)), options: .backwards)).lowerBound
            for place in start..<end {
                try stored.flipping([place]) { () throws in
                    #expect(throws: StateReader.Damage.self, "\(name), byte \(place)") {
                        try stored.reader.seq(of: StoredFile.todo)
                    }
                }
            }
        }
    }

    @Test("whatever byte of the rows and indexes of a file is flipped, an answer is the right one or none")
    func anyByte() async throws {
        let stored = try await StoredFile()
        let right = try stored.answers()
        #expect(right.count == 28 && right.values.allSatisfy { $0 != nil })
        var numbers = SeededNumbers(TestSeed.value)
        // Most bytes of a small file are unused zeros of its pages.
        let used = stored.rowPlaces.filter { stored.bytes[$0] != 0 }
        for _ in 0..<150 * effort {
            let place = numbers.pick(numbers.oneIn(20) ? stored.rowPlaces : used)
            let bit = numbers.below(8)
            try stored.flipping([place], by: 1 << bit) { () throws in
                let found: [String: String?]
                do {
                    found = try stored.answers()
                } catch {
                    // The read of a broken page or of a stream that is asked for again gives
                    // no answer, which is allowed.
                    return
                }
                for (question, answer) in found {
                    guard let answer else { continue }
                    #expect(answer == right[question]!, "byte \(place), bit \(bit): \(question)")
                }
            }
        }
    }

    @Test("a read finds an intact row that is stored in the place of another row")
    func swappedRow() async throws {
        let stored = try await StoredFile()
        let file = try Connection(path: stored.lab.path(0), mode: .readWrite)
        try file.execute(
            """
            UPDATE object SET (data, hash) = (SELECT data, hash FROM object WHERE key <> x'6d007461736b' LIMIT 1)
            WHERE key = x'6d007461736b'
            """
        )
        #expect(throws: StateReader.Damage.self) {
            try stored.reader.object(of: StoredFile.todo, model: "m", id: "task")
        }
    }
}
