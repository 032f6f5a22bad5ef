/// Waits until the condition is true. After `seconds` it throws an error that names the condition and the caller's
/// line.
package func eventually(
    _ what: String = "what is waited for",
    seconds: Int = 100,
    isolation: isolated (any Actor)? = #isolation,
    file: StaticString = #fileID,
    line: UInt = #line,
    _ condition: () async throws -> Bool
) async throws {
    let end = ContinuousClock.now + .seconds(seconds)
    while try await !condition() {
        guard ContinuousClock.now < end else { throw NeverCame(description: "never came: \(what) (\(file):\(line))") }
        try await Task.sleep(for: .milliseconds(2))
    }
}

/// The error of a test that has waited for a condition in vain.
package struct NeverCame: Error, CustomStringConvertible {
    package let description: String

    package init(description: String) { self.description = description }
}
