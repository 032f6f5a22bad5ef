import Foundation
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import ReelSQLite
import TestSupport
import Testing

@testable import ReelSnapshot

/// Tests that answers to clients name no file, and that log lines give operators the rest.
@Suite(.timeLimit(.minutes(5))) struct PublicSentenceTests {
    private let stream = StreamName("todo")!

    @Test("an error has one sentence for clients, and the whole for operators")
    func sentences() {
        let path = "/secret/partition-0.sqlite"
        let broken = SnapshotError(.internal, "cannot make \(path)")
        #expect(!broken.publicMessage.contains(path) && broken.message.contains(path))
        #expect(SnapshotError(.nodeBehind, path, told: "later").publicMessage == "later")
        #expect(SnapshotError(.nodeBehind, "ask again").publicMessage == "ask again")
        let log = SnapshotError(LogError(.damaged, "\(path) at seq 4"))
        #expect(!log.publicMessage.contains(path) && log.message.contains(path))
    }

    @Test("a failed answer hides its reason, and the node logs the reason once a minute")
    func hidesFailureReason() async throws {
        let lab = try Lab(partitions: 1)
        let lines = Lines()
        let node = try SnapshotNode(
            log: lab.log,
            settings: lab.settings,
            logger: Logger { lines.add($0) },
            metrics: Metrics()
        )
        defer { node.close() }
        let secret = "/secret/partition-0.sqlite"
        let errors: [any Error] = [
            SQLiteError(extendedCode: 10, message: "reading \(secret)"), SnapshotError(.internal, secret),
            Spool.NoRoom(reason: "cannot make a file in \(secret): No space left"),
        ]
        for error in errors {
            let problem = SnapshotNode.problem(of: error, node.keepers[0])
            let body = String(decoding: problem.response.body, as: UTF8.self)
            #expect(!body.contains("secret") && !body.contains("No space"), "\(body)")
        }
        let said = lines.all.filter { $0.contains(secret) }
        #expect(said.count == 1, "\(lines.all)")
    }

    @Test("a fold that stopped is refused with a sentence for clients")
    func stopped() throws {
        let secret = "/secret/log.sqlite"
        var status = PartitionSupervisor.Status()
        status.isVerified = true
        status.problem = SnapshotError(LogError(.damaged, "\(secret): row 4"))
        #expect(status.refusal == nil)
        status.problem = SnapshotError(.truncated, "\(secret) was trimmed", told: "the log was trimmed")
        #expect(status.refusal?.publicMessage == "the log was trimmed")
        #expect(status.refusal?.message.contains(secret) == true)
    }

    @Test("/readyz reports when no response slot is left, and stops when a slot is free")
    func reportsFullSlots() async throws {
        var lab = try Lab(partitions: 1)
        lab.settings.openResponses = 2
        let node = try lab.node()
        defer { node.close() }
        func body(forOperator: Bool = true) -> String {
            let health = NodeHealth([node.health])
            return String(decoding: health.body(epoch: lab.log.epoch, forOperator: forOperator), as: UTF8.self)
        }
        let sentence = "as many answers are under way as there may be"
        var held = [node.openResponses.take()]
        #expect(!body().contains(sentence))
        held.append(node.openResponses.take())
        #expect(node.openResponses.take() == nil)
        #expect(body().contains(sentence), "\(body())")
        #expect(!body(forOperator: false).contains(sentence))
        held = []
        #expect(!body().contains(sentence))
    }
}
