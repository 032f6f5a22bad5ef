import Foundation
import ReelBase
import ReelCore
import ReelSQLite
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// A device's process that is killed by SIGKILL during its work.
@Suite(.timeLimit(.minutes(5))) struct KilledDeviceTests {
    @Test("a killed device loses no event for which publish has returned") func aKilledDeviceLoses() async throws {
        try await Seeds.runAsync(4) { seed in
            var random = SeededGenerator(seed: seed)
            let path = temporaryPath()
            defer { removeStore(path) }
            var promised: [String] = []
            // The device runs several times. No run reaches a node.
            for life in 0..<3 {
                promised += try await feed(path, killAfter: Int.random(in: 1...60, using: &random), life: life)
            }
            let network = try FakeNetwork()
            let client = try network.client(store: .file(path))
            let todo = try await client.open("todo")
            try await eventually { await todo.pendingCount == 0 }
            let tasks = Set(try todo.objects("task").map(\.name.id))
            #expect(!promised.isEmpty)
            #expect(tasks.isSuperset(of: promised), "seed \(seed): of \(promised.count) promised events some are lost")
            let consumed = try await network.on { $0.fold(StreamName("todo")!).consumed }
            #expect(consumed == tasks.count, "seed \(seed): an event happened twice")
            await client.close()
        }
    }

    @Test("a closed store file is complete without its WAL") func aFileThatWas() async throws {
        let network = try FakeNetwork()
        let (path, copy) = (temporaryPath(), temporaryPath())
        defer { for store in [path, copy] { removeStore(store) } }
        try await network.on { $0.kill("a") }
        do {
            let client = try network.client(store: .file(path))
            try await client.open("s").publish(.insert("m", id: "1"))
            await client.close()
        }
        try await eventually { (try? Connection(path: path, mode: .readWrite).integer("SELECT 1 FROM mark")) == 1 }
        let file = try Data(contentsOf: URL(filePath: path))
        try file.write(to: URL(filePath: copy))
        let client = try network.client(store: .file(copy))
        #expect(try await client.open("s").pendingCount == 1)
        await client.close()
    }

    @Test(
        "a client reports damaged pairs of its queue, its sites and itself",
        arguments: ["q", "s", "c"],
        StoredStateTests.Damage.allCases
    )
    func damagedQueue(kind: String, damage: StoredStateTests.Damage) async throws {
        // A client without its pair looks like a new client. The same is true of a stream without its name.
        if damage == .otherKey, kind != "q" { return }
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        do {
            let client = try network.client(store: .file(path))
            let stream = try await client.open("s", from: .beginning)
            try await network.on { $0.kill("a") }
            try await stream.publish(.insert("m", id: "1"))
            await client.close()
        }
        let beginning = "substr(key, 1, 1) = CAST('\(kind)' AS BLOB)"
        do {
            let connection = try Connection(path: path, mode: .readWrite, busyMs: 5_000)
            try connection.execute("UPDATE pair SET \(damage.change) WHERE \(beginning)")
            #expect(connection.changes == 1)
        }
        let error = await #expect(throws: ReelError.self) {
            let client = try network.client(store: .file(path))
            _ = try await client.open("s", from: .beginning)
        }
        #expect(
            error?.code == .storeDamaged && error?.message.contains("damaged value") == true,
            "\(error.debugDescription)"
        )
    }

    @Test("a client reports values with the right hash that no client writes as damaged")
    func invalidQueue() async throws {
        let path = temporaryPath()
        defer { removeStore(path) }
        let name = try #require(StreamName("s"))
        var entry = Outbox.Entry(number: 1, event: .insert("m", id: "1"), base: 4)
        entry.author = .init(site: Site(high: 1, low: 1), op: -1)
        let contents: [[UInt8]] = [[], [0], Array(repeating: 0xFF, count: 40), entry.content]
        for content in contents {
            removeStore(path)
            do {
                let store = try DeviceStore(path: path)
                let row = try store.open(name, newSite: Site(high: 1, low: 1)).row
                try store.commit(durably: true) { (changes) throws(ReelError) in
                    changes.seal(content, for: StoreKey.entry(row, 1))
                }
            }
            let error = #expect(throws: ReelError.self) {
                try DeviceStore(path: path).open(name, newSite: Site(high: 1, low: 1))
            }
            #expect(error?.code == .storeDamaged)
        }
    }

    /// A cut store loses its end and never its middle, so the rest is an earlier commit. After each commit, position
    /// and data must be of the same moment.
    @Test("a store that is cut after any commit contains all data that it claims to cover") func storeCutAtCommit()
        async throws
    {
        let network = try FakeNetwork()
        let (path, copy) = (temporaryPath(), temporaryPath())
        defer { for store in [path, copy] { removeStore(store) } }
        let author = try await network.client().open("s", from: .beginning)
        let client = try network.client(store: .file(path))
        let stream = try await client.open("s", from: .beginning)
        for id in 0..<6 {
            try await author.publish(.insert("m", id: "\(id)")).outcome()
            try await stream.waitUntil(seq: Int64(id))
        }
        let file = try Data(contentsOf: URL(fileURLWithPath: path))
        let wal = try Data(contentsOf: URL(fileURLWithPath: path + "-wal"))
        await client.close()
        try await network.on { $0.down = ["a"] }
        var seqs: Set<Int64> = []
        for end in Self.commits(in: wal) {
            try file.write(to: URL(fileURLWithPath: copy))
            try wal.prefix(end).write(to: URL(fileURLWithPath: copy + "-wal"))
            let late = try network.client(store: .file(copy))
            let found = try await late.open("s", from: .beginning)
            let seq = await found.seq
            #expect(try found.objects("m").count == seq + 1, "up to byte \(end) of the WAL")
            seqs.insert(seq)
            await late.close()
            removeStore(copy)
        }
        #expect(seqs.count > 3)
    }

    /// Returns the byte offsets at which the transactions of a WAL end. A frame is 24 bytes and a page. Bytes 4 to 7 of
    /// the last frame of a transaction are not zero.
    private static func commits(in wal: Data) -> [Int] {
        func number(_ offset: Int) -> Int { wal[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) } }
        let frame = 24 + number(8)
        return stride(from: 32, through: wal.count - frame, by: frame).filter { number($0 + 4) != 0 }.map { $0 + frame }
    }

    /// Runs the example until it has printed `count` ids, then kills it. Returns all ids that it printed.
    private func feed(_ path: String, killAfter count: Int, life: Int) async throws -> [String] {
        let process = Process()
        process.executableURL = productsFolder.appendingPathComponent("example-todo")
        process.arguments = ["--store", path, "feed"]
        let (input, output) = (Pipe(), Pipe())
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        let lines = (0..<200).map { "task \(life)-\($0)\n" }.joined()
        try input.fileHandleForWriting.write(contentsOf: Data(lines.utf8))
        var said = Data()
        while said.filter({ $0 == UInt8(ascii: "\n") }).count < count {
            let piece = output.fileHandleForReading.availableData
            guard !piece.isEmpty else { throw Wrong() }
            said += piece
        }
        kill(process.processIdentifier, SIGKILL)
        said += try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        // A line without a line end is incomplete and does not count.
        return String(decoding: said, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false).dropLast()
            .map(String.init)
    }

    private var productsFolder: URL {
        // The test's own program is in the same folder as the example.
        URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
    }
}
