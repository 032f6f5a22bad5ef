internal import Synchronization

/// The observers of one stream. They are held weakly.
final class ContentObservers: Sendable {
    private struct Reference {
        weak var observer: ContentObserver?
    }

    private let references = Mutex<[Reference]>([])

    private var all: [ContentObserver] {
        references.withLock { references in
            references.removeAll { $0.observer == nil }
            return references.compactMap(\.observer)
        }
    }

    var isEmpty: Bool { all.isEmpty }

    func append(_ observer: ContentObserver) { references.withLock { $0.append(Reference(observer: observer)) } }

    /// Notes changes. Called while readers are locked out, so that no reader sees the content without them.
    func add(_ changes: ContentChanges) { for observer in all { observer.add(changes) } }

    /// Resumes the observers, after `add` and outside the lock of the content.
    func signal() { for observer in all { observer.signal() } }

    /// Resumes the observers of a stream that was closed.
    func signalEnd() { for observer in all { observer.signal(isEnd: true) } }
}
