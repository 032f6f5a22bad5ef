import Foundation
import ReelCore
import ReelLog
import ReelNode
import ReelSQLite
import TestSupport
import Testing

@testable import ReelSnapshot

/// A folded file without a WAL, and its original bytes.
struct StoredFile {
    static let todo = StreamName("todo")!
    static let notes = StreamName("notes")!
    static let site = "00000000-0000-4000-8000-000000000001"

    let lab: Lab
    let bytes: Data

    var reader: StateReader { lab.reader(0) }

    /// Folds events of two streams with barriers between them, and checkpoints the file.
    init() async throws {
        lab = try Lab(partitions: 1)
        var writers = [Writer(seed: 3), Writer(seed: 4)]
        let fields = #"{"title":"Task 7777"}"#
        let insert = EventText.logged("insert", Self.site, 0, model: "m", id: "task", fields: fields)
        try await lab.log.append([insert.text], key: "todo", to: 0)
        for seq in Seq(1)..<90 {
            if seq % 30 == 29 {
                try await lab.log.append([#"{"fold":1,"type":"barrier"}"#], key: "~reel", to: 0)
            } else {
                let index = Int(seq % 2)
                let value = writers[index].event(at: seq)
                try await lab.log.append([value], key: index == 0 ? "todo" : "notes", to: 0)
            }
        }
        let node = try lab.node()
        try await lab.reach(node, 0, 89)
        node.close()
        let file = try Connection(path: lab.path(0), mode: .readWrite)
        #expect(try file.integer("SELECT count(*) FROM stream") == 2)
        try file.execute("VACUUM")
        #expect(try file.checkpoint(.truncate))
        bytes = try Data(contentsOf: URL(filePath: lab.path(0)))
    }

    /// The offsets of the bytes that hold rows or index entries. The head of each page and its list of cells are
    /// excluded, because SQLite needs them to find the rows.
    var rowPlaces: [Int] {
        stride(from: 0, to: bytes.count, by: SnapshotFile.pageBytes).flatMap { page in
            let head = page == 0 ? 100 : page
            let isLeaf = bytes[head] & 8 != 0
            let cells = Int(bytes[head + 3]) << 8 | Int(bytes[head + 4])
            return Array(head + (isLeaf ? 8 : 12) + 2 * cells..<page + SnapshotFile.pageBytes)
        }
    }

    /// Runs `body` while the bytes at these offsets are changed by the mask.
    func flipping(_ places: [Int], by mask: UInt8 = 0x04, _ body: () throws -> Void) throws {
        for place in places { try write(bytes[place] ^ mask, at: place) }
        defer { for place in places { try? write(bytes[place], at: place) } }
        try body()
    }

    /// Writes one byte at an offset of the file.
    func write(_ byte: UInt8, at place: Int) throws {
        let file = try FileHandle(forUpdating: URL(filePath: lab.path(0)))
        defer { try? file.close() }
        try file.seek(toOffset: UInt64(place))
        try file.write(contentsOf: [byte])
    }

    /// Returns the offsets of each byte of a row whose parts are adjacent. A byte can have several, because SQLite may
    /// leave a copy of a moved row in the free part of a page.
    func places(of parts: [[UInt8]]) throws -> [[Int]] {
        let row = Data(parts.joined())
        var places = Array(repeating: [Int](), count: row.count)
        var rest = bytes[...]
        while let found = rest.range(of: row) {
            for (index, place) in found.enumerated() { places[index].append(place) }
            rest = bytes[found.upperBound...]
        }
        try #require(!places[0].isEmpty)
        return places
    }

    /// Returns the first row of a query. The last column is an integer, such as a hash, and is returned as eight bytes.
    func row(_ query: String, columns: Int32) throws -> [[UInt8]] {
        let row = try Connection(path: lab.path(0), mode: .readOnly).prepare(query)
        try #require(try row.step())
        return (0..<columns).map { column in
            guard column == columns - 1 else { return row.array(column) }
            return withUnsafeBytes(of: row.integer(column).bigEndian) { Array($0) }
        }
    }

    /// Returns the parts of the first row of `object` that a condition selects: key, digest, `agingSeq`, data, hash.
    func objectRow(_ condition: String) throws -> [[UInt8]] {
        let row = try Connection(path: lab.path(0), mode: .readOnly)
            .prepare("SELECT \(StoredRow.objectColumns) FROM object WHERE \(condition)")
        try #require(try row.step())
        func bytes(_ column: Int32) -> [UInt8] { withUnsafeBytes(of: row.integer(column).bigEndian) { Array($0) } }
        // The seqs of the file take one byte.
        let aging = row.isNull(3) ? [] : Array(bytes(3).suffix(1))
        return [row.array(1), bytes(2), aging, row.array(4), bytes(5)]
    }

    /// Returns the answer to each question, or nil if its read has found damage.
    func answers() throws -> [String: String?] {
        var answers: [String: String?] = [:]
        func ask(_ name: String, _ body: () throws -> String) throws {
            do {
                answers[name] = try body()
            } catch is StateReader.Damage {
                answers[name] = .some(nil)
            }
        }
        for stream in [Self.todo, Self.notes, StreamName("never")!] {
            try ask("\(stream) lines") { try reader.lines(of: stream, after: .none).text }
            try ask("\(stream) sites") { try "\(reader.sites(of: stream, after: .none, limit: 10))" }
            for after in [Seq.none, 40, 88] {
                try ask("\(stream) page \(after)") {
                    let page = try reader.page(of: stream, after: after, limit: 1_000)
                    return "\(page.head) \(page.chunk.to) " + String(decoding: page.chunk.body, as: UTF8.self)
                }
            }
            for id in ["task", "o3", "o11", "none"] {
                try ask("\(stream) object \(id)") {
                    try reader.object(of: stream, model: "m", id: id).map {
                        String(decoding: $0.json, as: UTF8.self)
                    } ?? "none"
                }
            }
        }
        try ask("todo outcome") {
            let ack = ServerFrame.Acked(site: Site(Self.site)!, op: 0, seq: 0)
            return "\(try reader.outcomes(of: [ack], in: Self.todo))"
        }
        return answers
    }
}
