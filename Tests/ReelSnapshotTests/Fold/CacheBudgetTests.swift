import ReelCore
import ReelLog
import ReelNode
import Synchronization
import TestSupport
import Testing

@testable import ReelSnapshot

/// Tests the memory that the partitions of a node share.
@Suite(.timeLimit(.minutes(1)))
struct CacheBudgetTests {
    @Test("a partition may use what the others leave, and always its share")
    func limits() {
        let budget = CacheBudget(bytes: 400, partitions: 4)
        #expect(budget.hold(0, in: 0) == 400)
        #expect(budget.hold(350, in: 1) == 400)
        #expect(budget.hold(40, in: 0) == 100)
        #expect(budget.hold(100, in: 2) == 100)
        #expect(budget.hold(350, in: 1) == 260)
        #expect(budget.hold(260, in: 1) == 260)
        budget.leave(2)
        #expect(budget.hold(260, in: 1) == 360)
    }

    @Test("the partitions above their share are asked to free memory when the budget is exceeded")
    func asks() {
        let budget = CacheBudget(bytes: 400, partitions: 4)
        let asked = Mutex<[Int]>([])
        for partition in 0..<4 { budget.join(partition) { asked.withLock { $0.append(partition) } } }
        _ = budget.hold(300, in: 1)
        _ = budget.hold(100, in: 2)
        #expect(asked.withLock { $0 } == [])
        _ = budget.hold(10, in: 3)
        #expect(asked.withLock { $0 } == [1])
        _ = budget.hold(200, in: 1)
        _ = budget.hold(90, in: 0)
        #expect(asked.withLock { $0 } == [1])
        _ = budget.hold(150, in: 2)
        #expect(asked.withLock { $0 } == [1, 1])
        budget.freed(to: 300, in: 1)
        #expect(asked.withLock { $0 } == [1, 1], "a partition that frees memory asks no other")
        budget.leave(1)
        _ = budget.hold(500, in: 3)
        #expect(asked.withLock { $0 } == [1, 1, 2])
    }

    @Test("a partition without new records frees memory that another one needs")
    func idlePartition() async throws {
        var lab = try Lab(partitions: 2)
        lab.settings.cachedBytes = 200_000
        let budget = CacheBudget(bytes: 200_000, partitions: 2)
        let keepers = try (0..<2).map { partition in
            let keeper = PartitionSupervisor(
                log: lab.log,
                number: 0,
                deployment: Deployment(beginningWith: lab.log.epoch),
                partition: partition,
                settings: lab.settings,
                budget: budget,
                logger: Logger(threshold: .error),
                metrics: SnapshotMetrics(Metrics(), epoch: lab.log.epoch, logger: Logger(threshold: .error))
            ) {}
            try keeper.start()
            return keeper
        }
        defer { for keeper in keepers { keeper.stop() } }
        for keeper in keepers {
            let partition = keeper.identity.partition
            let name = try #require(
                (0..<100).map { "s\($0)" }.first { name in
                    StreamName(name)?.partition(of: 2) == partition
                }
            )
            let inserts = (0..<500).map { op in
                let site = "00000000-0000-4000-8000-000000000001"
                return EventText.logged("insert", site, op, model: "m", id: "o\(op)", fields: #"{"t":"text"}"#).text
            }
            try await lab.log.append(inserts, key: name, to: partition)
            try await eventually { keeper.now.seq == 499 }
        }
        // Each stream alone fills the budget.
        try await eventually { budget.held(by: 0) <= 100_000 && budget.held(by: 1) <= 200_000 - budget.held(by: 0) }
        #expect(budget.held(by: 0) > 0)
    }
}
