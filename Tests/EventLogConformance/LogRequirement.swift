package import ReelLog
package import Testing

/// A behavior that every kind of log must have, with its test.
package struct LogRequirement: Sendable, CustomTestStringConvertible {
    package let testDescription: String
    private let partitions: Int
    private let check: @Sendable (any EventLog) async throws -> Void

    init(_ text: String, partitions: Int = 4, _ check: @escaping @Sendable (any EventLog) async throws -> Void) {
        testDescription = text
        self.partitions = partitions
        self.check = check
    }

    /// All requirements on a log.
    package static let all = appending + reading + announcing

    /// Checks the requirement on a new log.
    package func hold(for kind: some LogKind) async throws {
        try await kind.withLog(partitions: partitions, check)
    }
}

/// A kind of log that can be created for a test.
package protocol LogKind: Sendable, CustomTestStringConvertible {
    /// Creates an empty log, runs `body` with it, and then removes it.
    func withLog(partitions: Int, _ body: (any EventLog) async throws -> Void) async throws
}
