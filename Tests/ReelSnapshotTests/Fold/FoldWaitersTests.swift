import ReelCore
import ReelLog
import ReelNet
import ReelNode
import Synchronization
import TestSupport
import Testing

@testable import ReelSnapshot

/// Tests questions that wait until a seq is folded.
@Suite struct FoldWaitersTests {
    private let todo = StreamName("todo")!

    @Test("waits are bounded in all and for each payer, and their places are free once the seq is folded")
    func bounded() async throws {
        var lab = try Lab(partitions: 1)
        lab.settings.foldWaiters = 8
        lab.settings.reachMs = 1_000_000
        let node = try lab.node()
        defer { node.close() }
        let loop = try EventLoop()
        defer { loop.stop() }
        let ended = Atomic(0)
        func wait(_ payer: Payer?) throws -> Bool {
            try loop.sync {
                node.reach(0, of: todo, node.keepers[0], for: payer, on: loop) { ended.add(1, ordering: .relaxed) }
            }
        }
        let (eve, ann) = (Payer.subject("eve"), Payer.subject("ann"))
        #expect(try (0..<4).map { _ in try wait(eve) } == [true, true, false, false], "a quarter")
        #expect(try wait(ann))
        #expect(try (0..<7).map { _ in try wait(nil) } == [true, true, true, true, true, false, false], "the rest")
        #expect(try !wait(ann), "all places are taken")
        #expect(ended.load(ordering: .relaxed) == 0)

        var writer = Writer(seed: 1)
        try await lab.log.append([writer.event(at: 0)], key: "todo", to: 0)
        try await eventually("all waits have ended") { ended.load(ordering: .relaxed) == 8 }
        #expect(try wait(eve), "what is folded is not waited for")
        func waitLonger() throws -> Bool {
            try loop.sync { node.reach(9, of: todo, node.keepers[0], for: eve, on: loop) {} }
        }
        try await eventually("the places are free") { try waitLonger() }
    }

    @Test("a wait ends at its deadline and gives its place back")
    func deadline() async throws {
        var lab = try Lab(partitions: 1)
        lab.settings.foldWaiters = 4
        lab.settings.reachMs = 20
        let node = try lab.node()
        defer { node.close() }
        let loop = try EventLoop()
        defer { loop.stop() }
        let ended = Atomic(0)
        for count in 1...3 {
            let isTaken = try loop.sync {
                node.reach(7, of: todo, node.keepers[0], for: .subject("eve"), on: loop) {
                    ended.add(1, ordering: .relaxed)
                }
            }
            #expect(isTaken)
            try await eventually("the wait has ended") { ended.load(ordering: .relaxed) == count }
            try loop.sync {}
        }
    }
}
