import Foundation
import ReelCore
import ReelSQLite
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// The changes of a stream since a token, as a part of an app sees them.
@Suite(.timeLimit(.minutes(5))) struct ChangesSinceTests {
    @Test("kinds, origins, changed fields and old values") func kinds() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s")
        try await network.on { network in
            network.author(.insert("m", id: "1", ["a": 1, "b": "x"]))
            network.author(.insert("m", id: "2", ["a": 1]))
            network.author(.insert("m", id: "4", ["a": 1]))
            network.pushAll()
        }
        try await stream.waitUntil(seq: 2)
        let first = try await stream.changes(since: nil)
        #expect(first.isReset && first.objects.isEmpty)
        #expect(try await stream.changes(since: first.token).objects.isEmpty)
        try await stream.publish(.update("m", id: "1", ["a": 2, "c": 3])).outcome()
        try await stream.publish(.insert("m", id: "3", ["a": 9])).outcome()
        // It looks as at the token in the end.
        try await stream.publish(.update("m", id: "4", ["a": 7])).outcome()
        try await stream.publish(.update("m", id: "4", ["a": 1])).outcome()
        try await network.on { network in
            network.author(.delete("m", id: "2"))
            network.author(.update("m", id: "3", ["a": 10]))
            network.pushAll()
        }
        try await stream.waitUntil(seq: 8)
        let changes = try await stream.changes(since: first.token)
        #expect(!changes.isReset && changes.objects.map(\.name.id) == ["1", "2", "3"])
        #expect(changes.objects.map(\.kind) == [.updated, .deleted, .inserted])
        #expect(changes.objects.map(\.origin) == [.own, .remote, [.own, .remote]])
        #expect(changes.objects[0].changed == ["a": .value(1), "c": .absent])
        #expect(changes.objects[0].object?["c"] == 3)
        #expect(changes.objects[1].changed == ["a": .value(1)] && changes.objects[1].object == nil)
        #expect(changes.objects[2].changed == ["a": .absent] && changes.objects[2].object?["a"] == 10)
        #expect(try await stream.changes(since: changes.token).objects.isEmpty)
        // The token is a value of JSON.
        let stored = try JSONEncoder().encode(changes.token)
        #expect(try JSONDecoder().decode(ChangeToken.self, from: stored) == changes.token)
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(ChangeToken.self, from: Data(#""1-2""#.utf8)) }
        await client.close()
    }

    @Test("a change that the stream rejects is recorded twice, and an old value that is long is not kept")
    func rejected() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s")
        let long = JSONValue.string(String(repeating: "x", count: 2_000))
        try await stream.publish(.insert("m", id: "1", ["a": 1, "text": long])).outcome()
        let first = try await stream.changes(since: nil).token
        try await network.on { network in
            network.isSilent = true
            network.author(.update("m", id: "1", ["a": 5]))
        }
        let handle = try await stream.publish(SyncEvent(.update("m", id: "1", ["a": 2]).guarded(["a": 0])))
        let shown = try await stream.changes(since: first)
        #expect(shown.objects.map(\.origin) == [.own] && shown.objects[0].object?["a"] == 2)
        try await network.on { network in
            network.isSilent = false
            network.pushAll()
        }
        #expect(try await handle.outcome() == .rejected(.guard, 2))
        let after = try await stream.changes(since: shown.token)
        #expect(after.objects.map(\.kind) == [.updated] && after.objects[0].object?["a"] == 5)
        #expect(after.objects[0].changed == ["a": .value(2)])
        try await stream.publish(.update("m", id: "1", ["text": "short"])).outcome()
        let last = try await stream.changes(since: after.token)
        #expect(last.objects[0].changed == ["text": .tooLong])
        await client.close()
    }

    /// The way in which a device gets a state in place of events.
    enum Load: CaseIterable {
        case delta, snapshot, epoch
    }

    @Test("a load that replaces the state is compared with the former state", arguments: Load.allCases)
    func loads(_ load: Load) async throws {
        let network = try FakeNetwork()
        network.haste = 20
        let client = try network.client()
        try await network.on { for id in 0..<1_200 { $0.author(.insert("m", id: "\(id)", ["n": 1])) } }
        let stream = try await client.open("s")
        try await stream.waitUntil(seq: 1_199)
        let own = try await stream.publish(.update("m", id: "7", ["own": 1]))
        _ = try await own.outcome()
        let token = try await stream.changes(since: nil).token
        try await network.on { network in
            network.isSilent = true
            if load == .epoch {
                network.beginEpoch(Epoch(2))
                network.authored = 0
                network.author(.insert("m", id: "0", ["n": 1]))
                for id in 1..<100 { network.author(.insert("m", id: "\(id)", ["n": 2])) }
                network.author(.insert("m", id: "new", ["n": 2]))
            } else {
                // A delta of more than 1,000 rows names no objects.
                for id in 1..<1_100 { network.author(.update("m", id: "\(id)", ["n": 2])) }
                network.author(.delete("m", id: "1150"))
                network.author(.insert("m", id: "new", ["n": 2]))
                network.skip(Int(StreamSync.deltaFromSeqs))
            }
            if load == .snapshot {
                network.answers["a"] = { target, _ in
                    target.contains("/delta") ? (410, Array(#"{"code":"truncated"}"#.utf8)) : nil
                }
            }
            for connection in network.connections { connection.end("reset") }
        }
        try await eventually { try stream.object("m", id: "new") != nil }
        let answer = try await stream.changes(since: token)
        #expect(!answer.isReset)
        var changes: [ObjectName: ObjectChange] = [:]
        for change in answer.objects { changes[change.name] = change }
        #expect(changes.values.allSatisfy { $0.origin == .load })
        #expect(changes[ObjectName("m", id: "new")]?.kind == .inserted)
        #expect(changes[ObjectName("m", id: "1150")]?.kind == .deleted)
        #expect(changes[ObjectName("m", id: "1150")]?.changed == ["n": .value(1)])
        #expect(changes[ObjectName("m", id: "5")]?.changed == ["n": .value(1)])
        #expect(changes[ObjectName("m", id: "0")] == nil)
        #expect(changes.count == (load == .epoch ? 1_200 : 1_101))
        await client.close()
    }

    @Test("after an eviction or a damaged state the answer is a reset", arguments: [false, true])
    func forgotten(isDamaged: Bool) async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        var client = try network.client(store: .file(path))
        var stream = try await client.open("s")
        try await stream.publish(.insert("m", id: "1", ["n": 1])).outcome()
        let token = try await stream.changes(since: nil).token
        try await stream.publish(.insert("m", id: "2", ["n": 1])).outcome()
        if isDamaged {
            await client.close()
            do {
                let connection = try Connection(path: path, mode: .readWrite, busyMs: 5_000)
                try connection.execute("UPDATE pair SET value = X'' WHERE substr(key, 1, 1) = CAST('t' AS BLOB)")
            }
            client = try network.client(store: .file(path), seed: 9)
        } else {
            try await client.evict("s")
        }
        stream = try await client.open("s")
        try await eventually { try stream.object("m", id: "2") != nil }
        #expect(try await stream.changes(since: token).isReset)
        await client.close()
    }

    @Test("a history keeps a bounded number of changes, and a store that lost its last rows does not fill the gap")
    func bounds() throws {
        let path = temporaryPath()
        defer { removeStore(path) }
        let store = try DeviceStore(path: path)
        let site = try #require(Site("00000000-0000-4000-8000-000000000000"))
        let row = try store.open(try #require(StreamName("s")), newSite: site).row
        var (history, tag) = (HistoryRow(random: 7), UInt32(0))
        func add(_ count: Int) throws {
            let records = (0..<count).compactMap { id in
                ChangeRecord(Fold.key(model: "m", id: "\(id)"), from: nil, to: object("\(id)"), .own)
            }
            try store.commit(durably: false) { changes throws(ReelError) in
                try store.add(records, to: &history, row, &changes) {
                    tag += 1
                    return tag
                }
            }
        }
        let first = history.token
        for _ in 0..<65 { try add(1_000) }
        let middle = history.token
        #expect(try history.changes(since: first, ofStream: row, in: store.storage.snapshot()) != nil)
        try add(2_500)
        #expect(history.records <= HistoryRow.recordsMax && history.records > HistoryRow.recordsMax / 2)
        #expect(try history.changes(since: first, ofStream: row, in: store.storage.snapshot()) == nil)
        let found = try #require(try history.changes(since: middle, ofStream: row, in: store.storage.snapshot()))
        #expect(try found.changes { _ in nil }.isEmpty)
        #expect(try store.history(row) == history)
        var stored = 0
        let (start, end) = (StoreKey.history(row, 0), StoreKey.end(of: StoreKey.history(row)))
        try store.storage.snapshot().forEach(from: start, to: end) { (key, value) throws(ReelError) in
            stored += SealedValue.open(value, for: key)?.count ?? 0
            return true
        }
        #expect(history.bytes == stored)
        // The store of a backup continues with other rows.
        let lost = history.token
        history.next -= 1
        try add(10)
        #expect(try history.changes(since: lost, ofStream: row, in: store.storage.snapshot()) == nil)
        // A change that is not known ends the history.
        let before = history.token
        try store.commit(durably: false) { changes throws(ReelError) in
            try store.add(nil, to: &history, row, &changes) { 99 }
        }
        #expect(try history.changes(since: before, ofStream: row, in: store.storage.snapshot()) == nil)
        #expect(try history.changes(since: history.token, ofStream: row, in: store.storage.snapshot()) != nil)
    }

    private func object(_ id: String) -> SyncObject? {
        var fold = Fold(stream: StreamName("s")!, partition: 0, epoch: Epoch(1))
        let author = EventID(site: Site(high: 1, low: 1), op: 0)
        let value = SyncEvent.insert("m", id: id, ["n": 1]).encoded(base: -1, author: author)
        _ = OverlaySimulation.apply(value, to: &fold, at: 0)
        let position = ReadPosition(epoch: nil, seq: 0, withdrawals: 0)
        return fold.object(Fold.key(model: "m", id: id)).map { SyncObject($0, readAt: position) }
    }
}
