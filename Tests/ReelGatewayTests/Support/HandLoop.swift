import EventLogConformance
import ReelBase
import TestSupport

@testable import ReelGateway

/// A loop that runs its jobs and its offloaded work in an order that a seed determines.
final class HandLoop: HostLoop, @unchecked Sendable {
    let nowMs: Int64 = 0
    let wallMs: Int64 = 0
    let writeMicros = 1.0
    func writing(toMost count: Int, _ body: () -> Void) { body() }
    private var jobs = Deque<() -> Void>()
    private var works: [() -> Void] = []

    /// Runs one job or one piece of offloaded work. Returns false if there is none.
    func step(_ generator: inout SeededNumbers) -> Bool {
        if !works.isEmpty, jobs.isEmpty || Int.random(in: 0..<4, using: &generator) == 0 {
            works.remove(at: .random(in: 0..<works.count, using: &generator))()
        } else if let job = jobs.popFirst() {
            job()
        } else {
            return false
        }
        return true
    }

    func beforeFlush(_ body: @escaping () -> Void) { jobs.append(body) }
    func afterFlush(_ body: @escaping () -> Void) { jobs.append(body) }
    func schedule(_ body: @escaping () -> Void) { jobs.append(body) }
    func once(after ms: Int64, _ body: @escaping () -> Void) -> any HostTimer { HandTimer {} }
    func every(_ ms: Int64, _ body: @escaping () -> Void) -> any HostTimer { HandTimer {} }

    func offload<T: Sendable>(_ work: @escaping @Sendable () -> T, then: @escaping (T) -> Void) {
        works.append { [self] in
            let result = work()
            jobs.append { then(result) }
        }
    }

    func bound<T: Sendable>(_ body: @escaping (T) -> Void) -> @Sendable (T) -> Void {
        nonisolated(unsafe) let body = body
        return { [self] value in jobs.append { body(value) } }
    }
}

/// A timer of a loop that a test moves.
final class HandTimer: HostTimer {
    private let end: () -> Void

    init(_ end: @escaping () -> Void) { self.end = end }

    func cancel() { end() }
}
