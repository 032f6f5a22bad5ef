import Synchronization

/// Lines of text that a journal, or anything else, has written.
package final class Lines: Sendable {
    private let texts = Mutex<[String]>([])

    /// None yet.
    package init() {}

    /// Writes one more.
    package func add(_ text: String) { texts.withLock { $0.append(text) } }

    /// All that were written.
    package var all: [String] { texts.withLock { $0 } }
}
