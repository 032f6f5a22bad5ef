import Foundation
import ReelNet
import Synchronization
import TestSupport
import Testing

@testable import ReelSnapshot

/// Tests that equal concurrent requests share one piece of work.
@Suite struct RequestCoalescerTests {
    /// Records requests and their answers. Each piece of work waits until the test calls `letGo`.
    final class Desk: Sendable {
        let work = RequestCoalescer<String, Int>()
        private let begun = Mutex(0)
        private let answers = Mutex<[(question: String, time: Int)]>([])
        private let gate = DispatchSemaphore(value: 0)

        /// The number of times that the work has begun.
        var times: Int { begun.withLock { $0 } }
        /// For each answer, the number of the work that it comes from.
        var answered: [Int] { answers.withLock { $0.map(\.time) } }
        func answered(_ question: String) -> [Int] {
            answers.withLock { $0.filter { $0.question == question }.map(\.time) }
        }

        /// Requests the work. Returns false if the request would begin new work and must not.
        @discardableResult
        func ask(_ question: String, on loop: EventLoop, mayBegin: Bool = true) throws -> Bool {
            try loop.sync { [self] in
                work.ask(question, on: loop) { [self] in
                    guard mayBegin else { return nil }
                    return { [self] in
                        let time = begun.withLock { begun in
                            begun += 1
                            return begun
                        }
                        gate.wait()
                        return time
                    }
                } then: { [self] time in
                    answers.withLock { $0.append((question, time)) }
                    return true
                }
            }
        }

        func letGo() { gate.signal() }
    }

    @Test("requests that arrive during a build share the next build")
    func lateRequestsShareBuild() async throws {
        let loops = [try EventLoop(), try EventLoop()]
        defer { for loop in loops { loop.stop() } }
        let desk = Desk()
        try desk.ask("a", on: loops[0])
        try await eventually("it is begun") { desk.times == 1 }
        for number in 0..<100 { try desk.ask("a", on: loops[number % 2]) }
        desk.letGo()
        try await eventually("the first has its answer, and the next time has begun") {
            desk.answered == [1] && desk.times == 2
        }
        desk.letGo()
        try await eventually("all have theirs") { desk.answered.count == 101 }
        #expect(desk.answered.dropFirst().allSatisfy { $0 == 2 }, "none got what was begun before they asked")
        #expect(desk.times == 2)
    }

    @Test("requests that arrive before a build begins share it")
    func earlyRequestsShareBuild() async throws {
        let loop = try EventLoop()
        defer { loop.stop() }
        let desk = Desk()
        // These are more pieces of work than this machine runs concurrently.
        let others = ProcessInfo.processInfo.activeProcessorCount + 2
        for number in 0..<others { try desk.ask("other \(number)", on: loop) }
        try await eventually("threads are taken") { desk.times > 0 }
        for _ in 0..<10 { try desk.ask("a", on: loop) }
        for _ in 0...others { desk.letGo() }
        try await eventually("all have their answers") { desk.answered.count == others + 10 }
        #expect(desk.times == others + 1)
        #expect(Set(desk.answered("a")).count == 1)
    }

    @Test("a caller that may not begin a build is refused unless another caller has requested that build")
    func refusesNewBuild() async throws {
        let loop = try EventLoop()
        defer { loop.stop() }
        let desk = Desk()
        try desk.ask("a", on: loop)
        try await eventually("it is begun") { desk.times == 1 }
        #expect(try !desk.ask("b", on: loop, mayBegin: false))
        #expect(try !desk.ask("a", on: loop, mayBegin: false), "the next round would be its own")
        #expect(try desk.ask("a", on: loop))
        #expect(try desk.ask("a", on: loop, mayBegin: false), "it is another one's")
        desk.letGo()
        desk.letGo()
        try await eventually("those of the first question are answered") { desk.answered == [1, 2, 2] }
        try desk.ask("b", on: loop)
        desk.letGo()
        try await eventually("and the other one, now that it may begin") { desk.answered == [1, 2, 2, 3] }
    }

    @Test("different questions do not wait for each other")
    func differentQuestions() async throws {
        let loop = try EventLoop()
        defer { loop.stop() }
        let desk = Desk()
        try desk.ask("a", on: loop)
        try desk.ask("b", on: loop)
        try await eventually("both are begun") { desk.times == 2 }
        desk.letGo()
        desk.letGo()
        try await eventually("both are answered") { desk.answered.sorted() == [1, 2] }
    }
}
