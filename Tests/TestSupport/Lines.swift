import Synchronization

/// A list of text lines, such as the log lines of a node, that several threads can add to.
package final class Lines: Sendable {
    private let texts = Mutex<[String]>([])

    package init() {}

    package func add(_ text: String) { texts.withLock { $0.append(text) } }

    package var all: [String] { texts.withLock { $0 } }
}
