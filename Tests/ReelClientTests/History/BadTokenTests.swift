import Foundation
import ReelBase
import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// Change tokens that the device has not given, or that its store does not have any more.
@Suite(.timeLimit(.minutes(5))) struct BadTokenTests {
    @Test("a token of another stream, device or user, of the future or with another tag is answered with a reset")
    func foreign() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        defer { removeStore(path) }
        var client = try network.client(store: .file(path))
        let device = try network.client(seed: 6)
        let (one, two) = (try await client.open("s"), try await client.open("t"))
        let elsewhere = try await device.open("s")
        try await eventually { one.status.content == .upToDate && two.status.content == .upToDate }
        let (first, other) = (try await one.changes(since: nil).token, try await two.changes(since: nil).token)
        let foreign = try await elsewhere.changes(since: nil).token
        try await one.publish(.insert("m", id: "1")).outcome()
        let token = try await one.changes(since: first).token
        let wrong = [
            other, foreign, ChangeToken(history: token.history, number: token.number + 1, tag: token.tag),
            ChangeToken(history: token.history, number: token.number, tag: token.tag ^ 1),
            ChangeToken(history: token.history, number: .max, tag: 0),
            ChangeToken(history: token.history, number: .min, tag: 0),
            ChangeToken(history: .max, number: 1, tag: 0),
        ]
        for token in wrong { #expect(try await one.changes(since: token).isReset, "\(token)") }
        #expect(try await one.changes(since: first).objects.count == 1)
        await one.close()
        let error = await #expect(throws: ReelError.self) { try await one.changes(since: first) }
        #expect(error?.code == .closed)
        // The next user of the device.
        _ = try await client.signOut()
        client = try network.client(store: .file(path), seed: 7)
        let stream = try await client.open("s")
        #expect(try await stream.changes(since: token).isReset)
        await client.close()
        await device.close()
    }

    @Test("a store that was restored from a backup answers later tokens with a reset, and earlier ones with changes")
    func restored() async throws {
        let network = try FakeNetwork()
        let storage = StoppingStorage(MemoryStorage())
        let client = try network.client(nodes: [], store: .storage(storage))
        let stream = try await client.open("s")
        var tokens = [try await stream.changes(since: nil).token]
        for id in 1...3 {
            try await stream.publish(.insert("m", id: "\(id)"))
            tokens.append(try await stream.changes(since: nil).token)
        }
        let backup = try storage.copy()
        for id in 4...6 {
            try await stream.publish(.insert("m", id: "\(id)"))
            tokens.append(try await stream.changes(since: nil).token)
        }
        await client.close()
        let restored = try network.client(nodes: [], store: .storage(backup), seed: 9)
        let again = try await restored.open("s")
        func expectKnown(_ ids: [String]) async throws {
            for (index, token) in tokens.enumerated() {
                let changes = try await again.changes(since: token)
                #expect(changes.isReset == (index > 3))
                #expect(changes.objects.map(\.name.id) == (index > 3 ? [] : Array(ids[index...])))
            }
        }
        try await expectKnown(["1", "2", "3"])
        // The numbers of the later tokens are given again, to other rows.
        for id in ["7", "8", "9"] { try await again.publish(.insert("m", id: id)) }
        try await expectKnown(["1", "2", "3", "7", "8", "9"])
        await restored.close()
    }

    @Test("only tokens that the history has given are answered with changes, whatever bytes an app passes")
    func random() throws {
        let path = temporaryPath()
        defer { removeStore(path) }
        let store = try DeviceStore(path: path)
        let site = try #require(Site("00000000-0000-4000-8000-000000000000"))
        let row = try store.open(try #require(StreamName("s")), newSite: site).row
        try Seeds.run(2) { seed in
            var random = SeededGenerator(seed: seed)
            var history = HistoryRow(random: random.next())
            try store.commit(durably: false) { changes in store.removeHistory(row, &changes) }
            var given = [history.token]
            for number in 0..<20 {
                let record = try ChangeRecord(key: Fold.key(model: "m", id: "\(number)"), existed: true, exists: false)
                try store.commit(durably: false) { changes throws(ReelError) in
                    try store.add(number == 5 ? nil : [record], to: &history, row, &changes) {
                        UInt32(truncatingIfNeeded: random.next())
                    }
                }
                // The changes of row 5 are not known, and the earlier tokens are too old.
                if number == 5 { given = [] }
                given.append(history.token)
            }
            let snapshot = try store.storage.snapshot()
            var answers = 0
            for _ in 0..<10_000 {
                let old = try #require(given.randomElement(using: &random))
                var text = Array(old.description.utf8)
                switch Int.random(in: 0..<4, using: &random) {
                case 0: text = (0..<Int.random(in: 0..<50, using: &random)).map { _ in random.byte() }
                case 1: text = Array("0123456789abcdef-".utf8.shuffled(using: &random))
                default:
                    for _ in 0..<Int.random(in: 0...2, using: &random) {
                        text[Int.random(in: text.indices, using: &random)] ^= 1 << (random.byte() % 8)
                    }
                }
                let passed = String(decoding: text, as: UTF8.self)
                guard let token = ChangeToken(passed) else { continue }
                #expect(token.description == passed)
                let changes = try history.changes(since: token, ofStream: row, in: snapshot)
                #expect((changes != nil) == given.contains(token), "\(token)")
                guard let changes, let index = given.firstIndex(of: token) else { continue }
                answers += 1
                let names = try changes.changes { _ in nil }.map(\.name.id)
                #expect(Set(names) == Set((20 - (given.count - 1 - index)..<20).map { "\($0)" }))
            }
            #expect(answers > 1_000)
        }
    }

    @Test("a text that is no token is refused, also as JSON") func texts() throws {
        let texts = [
            "", "1", "1-2", "1-0-0", "1--1-0", "g-1-0", "1-1-100000000", "1-2-3-4", "+1-1-0", "01-1-0", "A-1-0",
        ]
        for text in texts {
            #expect(ChangeToken(text) == nil, "\(text)")
            let json = try JSONEncoder().encode(text)
            #expect(throws: DecodingError.self) { try JSONDecoder().decode(ChangeToken.self, from: json) }
        }
        let token = ChangeToken(history: .max, number: .max, tag: .max)
        #expect(ChangeToken(token.description) == token && token.description.utf8.count <= 45)
        let json = try JSONEncoder().encode(token)
        #expect(try JSONDecoder().decode(ChangeToken.self, from: json) == token)
    }
}

extension ChangeRecord {
    /// A record without old values, as it is read from a row.
    fileprivate init(key: Overlay.Key, existed: Bool, exists: Bool) throws {
        var row = RowWriter([])
        row.write(1 as Int64)
        row.write(key)
        row.write(existed)
        row.write(exists)
        row.write(1 as Int64)
        row.write(0 as Int64)
        self = try row.bytes.withUnsafeBytes { bytes in
            var reader = RowReader(bytes)
            return try ChangeRecord.records(in: &reader)[0]
        }
    }
}

extension SeededGenerator {
    fileprivate mutating func byte() -> UInt8 { .random(in: 0...255, using: &self) }
}
