package import ReelLog
package import Testing

/// One thing that every log does, whatever lies behind it.
package struct LogRequirement: Sendable, CustomTestStringConvertible {
    package let testDescription: String
    private let partitions: Int
    private let check: @Sendable (any EventLog) async throws -> Void

    init(_ text: String, partitions: Int = 4, _ check: @escaping @Sendable (any EventLog) async throws -> Void) {
        testDescription = text
        self.partitions = partitions
        self.check = check
    }

    /// What is asked of every log.
    package static let all = appending + reading + announcing

    /// Checks it on a fresh log.
    package func hold(for kind: some LogKind) async throws {
        try await kind.withLog(partitions: partitions, check)
    }
}

/// A kind of log that can be made for a test.
package protocol LogKind: Sendable, CustomTestStringConvertible {
    /// Runs `body` with an empty log that lives as long.
    func withLog(partitions: Int, _ body: (any EventLog) async throws -> Void) async throws
}
