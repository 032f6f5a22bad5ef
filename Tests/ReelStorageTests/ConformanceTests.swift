import ReelClient
import ReelStorageConformance
import Testing

/// The checks that every storage must pass, for each storage.
@Suite(.timeLimit(.minutes(10))) struct ConformanceTests {
    @Test("every storage passes all checks of the suite", arguments: CheckedStorage.all)
    func aStorageHolds(checked: CheckedStorage) async throws {
        try await checked.suite.run(checked.check)
    }

    @Test("the suite returns the names of the checks that a storage has passed")
    func namesOfPassedChecks() async throws {
        let suite = StorageConformance.memory
        let passed = try await suite.run()
        #expect(passed == suite.checks.map(\.name))
        #expect(Set(passed).count == passed.count && passed.count > 15)
        #expect(StorageConformance.sqlite(in: try Folder()).checks.count > passed.count)
    }
}

/// One check of one storage.
struct CheckedStorage: Sendable, CustomTestStringConvertible {
    let suite: StorageConformance
    let check: StorageConformance.Check

    var testDescription: String { "\(suite.name): \(check.name)" }

    /// All checks of all storages.
    static let all: [CheckedStorage] = {
        guard let folder = try? Folder() else { return [] }
        return [.memory, .sqlite(in: folder), .own(in: folder)].flatMap { (suite: StorageConformance) in
            suite.checks.map { CheckedStorage(suite: suite, check: $0) }
        }
    }()
}
