package import ReelCore
package import ReelLog
import TestSupport
import Testing

/// A behavior that every log must have whose first records can be removed, with its test.
package struct TrimRequirement: Sendable, CustomTestStringConvertible {
    /// A function that removes the records of partition 0 before a seq.
    typealias Trim = @Sendable (_ before: Seq) throws -> Void

    package let testDescription: String
    private let check: @Sendable (any EventLog, Trim) async throws -> Void

    private init(_ text: String, _ check: @escaping @Sendable (any EventLog, Trim) async throws -> Void) {
        testDescription = text
        self.check = check
    }

    /// Checks the requirement on a new log.
    package func hold(for kind: some TrimmableLog) async throws {
        try await kind.withLog(partitions: 1) { log in
            try await check(log) { try kind.trim(log, before: $0) }
        }
    }

    /// All requirements on a log whose first records can be removed.
    package static let all = [
        TrimRequirement("what was trimmed is truncated for who reads it, and the rest goes on") { log, trim in
            try await log.append("0", "1", "2", "3", "4")
            try trim(3)
            #expect(try log.bounds(0) == LogBounds(first: 3, last: 4))
            let error = #expect(throws: LogError.self) { try log.read(0, from: 2, to: 9, bytes: 99) }
            #expect(error?.code == .truncated && error?.seq == 3)
            #expect(try log.read(0, from: 3, to: 9, bytes: 99).seen.map(\.text) == ["3", "4"])
            let (below, behind) = (CollectingSink(), CollectingSink())
            _ = log.tail(0, from: 2, to: below)
            _ = log.tail(0, from: 3, to: behind)
            try await eventually("truncated") { below.error?.code == .truncated }
            #expect(below.error?.seq == 3)
            try await eventually("the rest") { behind.texts == ["3", "4"] }
        },
        TrimRequirement("a log that was trimmed up to its end is not empty: it says where it goes on") { log, trim in
            try await log.append("0", "1", "2", "3", "4")
            try trim(5)
            #expect(try log.bounds(0) == LogBounds(first: 5, last: 4))
            let error = #expect(throws: LogError.self) { try log.read(0, from: 4, to: 9, bytes: 99) }
            #expect(error?.code == .truncated && error?.seq == 5)
            #expect(try log.read(0, from: 5, to: 9, bytes: 99).seqs.isEmpty)
            let (below, behind, beyond) = (CollectingSink(), CollectingSink(), CollectingSink())
            _ = log.tail(0, from: 4, to: below)
            _ = log.tail(0, from: 5, to: behind)
            _ = log.tail(0, from: 6, to: beyond)
            try await eventually("truncated") { below.error?.code == .truncated }
            #expect(below.error?.seq == 5)
            try await eventually("ahead of the log") { beyond.error?.code == .aheadOfLog }
            #expect(beyond.error?.seq == 4)
            #expect(try await log.append("5") == [5])
            #expect(try log.bounds(0) == LogBounds(first: 5, last: 5))
            try await eventually("what comes then") { behind.texts == ["5"] }
        },
    ]
}

/// A kind of log whose first records can be removed.
package protocol TrimmableLog: LogKind {
    /// Removes the records of partition 0 before a seq.
    func trim(_ log: any EventLog, before seq: Seq) throws
}
