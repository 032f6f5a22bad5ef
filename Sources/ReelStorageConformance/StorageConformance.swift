public import ReelClient

/// The behavior that every `DeviceStorage` must have, as a list of checks.
///
/// An app with a storage of its own runs it in a test:
///
/// ```swift
/// let conformance = StorageConformance(
///     name: "MyStorage",
///     make: { try MyStorage(path: freshPath()) },
///     reopen: { try MyStorage(path: ($0 as? MyStorage)?.path ?? "") }
/// )
/// try await conformance.run()
/// ```
///
/// The suite imports no test library. To have one test for each check, pass `checks` to a parameterized test.
public struct StorageConformance: Sendable {
    /// Makes a storage, or makes another one from it.
    public typealias Next = @Sendable (any DeviceStorage) throws -> any DeviceStorage

    /// The name of the storage, for messages.
    public let name: String
    /// The time after which a check counts as stalled.
    public let deadline: Duration
    let make: @Sendable () throws -> any DeviceStorage
    let reopen: Next?
    let crash: Next?

    /// Creates a suite.
    ///
    /// - Parameters:
    ///   - name: The name of the storage, for messages.
    ///   - deadline: The time after which a check counts as stalled. A check takes seconds at most on a fast machine.
    ///   - make: Returns an empty storage at a place of its own.
    ///   - reopen: Gets a storage that was closed or erased, and opens its place again. Nil: the storage keeps nothing.
    ///   - crash: Gets an open storage, and returns one on what a crash at this moment leaves: without `close`, and for
    ///     a power failure without all data that does not wait for the disk. Nil: no check of crashes.
    public init(
        name: String,
        deadline: Duration = .seconds(120),
        make: @escaping @Sendable () throws -> any DeviceStorage,
        reopen: Next? = nil,
        crash: Next? = nil
    ) {
        self.name = name
        self.deadline = deadline
        self.make = make
        self.reopen = reopen
        self.crash = crash
    }

    /// The checks that this storage must pass. Those for `reopen` and `crash` are in it only if these are given.
    public var checks: [Check] {
        Check.content + Check.moments + Check.endings + (reopen == nil ? [] : Check.restarts)
            + (crash == nil ? [] : Check.crashes) + Check.threads + Check.bulk
    }

    /// Runs all checks, one after the other, and returns their names. Throws the first fault.
    @discardableResult
    public func run() async throws -> [String] {
        var passed: [String] = []
        for check in checks {
            try await run(check)
            passed.append(check.name)
        }
        return passed
    }

    /// Runs one check on a fresh storage. Throws a `StorageFault` if the storage does not pass it.
    public func run(_ check: Check) async throws {
        let calls = RunningCalls()
        let trial = Trial(suite: self, calls: calls)
        let deadline = deadline
        let reason = await FirstOf.value(
            work: { () -> String? in
                do {
                    try check.body(trial)
                    return nil
                } catch {
                    return "\(error)"
                }
            },
            after: deadline,
            instead: { "the storage did not return within \(deadline) from: \(calls.description)" }
        )
        if let reason { throw StorageFault(storage: name, check: check.name, reason: reason) }
    }
}

extension StorageConformance {
    /// One thing that every storage does.
    public struct Check: Sendable, CustomStringConvertible {
        /// The behavior, as a sentence.
        public let name: String
        let body: @Sendable (Trial) throws -> Void

        /// The name.
        public var description: String { name }

        init(_ name: String, _ body: @escaping @Sendable (Trial) throws -> Void) {
            self.name = name
            self.body = body
        }
    }
}

/// The error of a storage that does not pass a check.
public struct StorageFault: Error, Sendable, CustomStringConvertible {
    /// The name of the storage.
    public let storage: String
    /// The name of the check: the behavior that is missing.
    public let check: String
    /// One sentence that says what was found and what was expected.
    public let reason: String

    /// All three in one line.
    public var description: String { "\(storage) does not pass “\(check)”: \(reason)" }
}
