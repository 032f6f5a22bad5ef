import Foundation
import ReelCore
import ReelLab
import ReelNet
import TestSupport
import Testing

/// Tests nodes that are killed at any moment while authors publish.
@Suite(.timeLimit(.minutes(20))) struct KilledNodeTests {
    /// Runs the authors during the body. Then it stops them and waits until all their events are acked.
    private func with<Answer>(_ authors: [Author], _ body: () async throws -> Answer) async throws -> Answer {
        let tasks = authors.map { author in Task { await author.run() } }
        defer { for task in tasks { task.cancel() } }
        let answer = try await body()
        for author in authors { author.stop() }
        for task in tasks { await task.value }
        return answer
    }

    private func acks(_ authors: [Author]) -> Int { authors.reduce(0) { $0 + $1.acked.count } }

    @Test("a node killed while it takes events loses none that it acked") func aNodeKilledWhile() async throws {
        var numbers = SeededNumbers(TestSeed.value)
        let folder = try TemporaryFolder(prefix: "reel-killed-")
        let node = try NodeProcess.serve(in: folder)
        let authors = (0..<4).map { Author($0, of: "todo", through: [node.port]) }
        try await with(authors) {
            for round in 0..<min(200, 6 * effort) {
                let goal = acks(authors) + Int.random(in: 1...200, using: &numbers)
                try await eventually("\(goal) acks in round \(round)") { acks(authors) >= goal }
                try node.restart()
            }
            let goal = acks(authors) + 100
            try await eventually("\(goal) acks at the end") { acks(authors) >= goal }
        }
        var log = DumpedLog(of: "todo", at: folder.path + "/data/log.sqlite")
        try await log.fold()
        for author in authors { try log.verify(author) }
        #expect(try log.agrees(with: try await node.snapshot(of: "todo", upTo: log.seq)))
    }

    @Test("a snapshot node killed at any moment has the data of its position") func aSnapshotNodeKilled() async throws {
        var numbers = SeededNumbers(TestSeed.value)
        let folder = try TemporaryFolder(prefix: "reel-killed-")
        let gateway = try NodeProcess.gateway(in: folder)
        let node = try NodeProcess.snapshot(in: folder)
        let authors = (0..<3).map { Author($0, of: "todo", through: [gateway.port]) }
        var log = DumpedLog(of: "todo", at: folder.path + "/log.sqlite")
        try await with(authors) {
            for round in 0..<min(200, 10 * effort) {
                let goal = acks(authors) + Int.random(in: 1...60, using: &numbers)
                try await eventually("\(goal) acks in round \(round)") { acks(authors) >= goal }
                try await Task.sleep(for: .microseconds(Int.random(in: 0...5_000, using: &numbers)))
                try node.restart()
                let snapshot = try await node.snapshot(of: "todo")
                let seq = try position(of: snapshot)
                #expect(seq >= log.seq, "it never goes back behind what it has shown")
                try await log.fold(upTo: seq)
                #expect(try log.agrees(with: snapshot), "round \(round), seq \(seq)")
            }
        }
        try await log.fold()
        #expect(try log.agrees(with: try await node.snapshot(of: "todo", upTo: log.seq)))
        for author in authors { try log.verify(author) }
        #expect(!node.logger.contains("put aside"), "\(node.logger)")
    }

    @Test("a gateway killed among two loses nothing") func aGatewayKilledAmong() async throws {
        let folder = try TemporaryFolder(prefix: "reel-killed-")
        let (one, two) = (
            try NodeProcess.gateway("one", in: folder), try NodeProcess.gateway("two", in: folder)
        )
        let node = try NodeProcess.snapshot(in: folder)
        let authors = (0..<4).map {
            Author($0, of: "todo", through: $0 % 2 == 0 ? [one.port, two.port] : [two.port, one.port])
        }
        try await with(authors) {
            for round in 0..<min(100, 3 * effort) {
                for gateway in [one, two] {
                    let goal = acks(authors) + 50
                    try await eventually("\(goal) acks in round \(round)") { acks(authors) >= goal }
                    try gateway.restart()
                }
            }
        }
        var log = DumpedLog(of: "todo", at: folder.path + "/log.sqlite")
        try await log.fold()
        for author in authors { try log.verify(author) }
        let states = [one, two, node]
        for state in states {
            #expect(try log.agrees(with: try await state.snapshot(of: "todo", upTo: log.seq)), "\(state.name)")
        }
    }

    private func position(of snapshot: [UInt8]) throws -> Seq {
        let head = try #require(snapshot.split(separator: 0x0a).first)
        let members = try JSONSerialization.jsonObject(with: Data(head)) as? [String: Any]
        return try #require(members?["seq"] as? Seq)
    }
}
