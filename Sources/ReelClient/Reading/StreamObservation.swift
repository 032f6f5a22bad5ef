package import ReelCore
internal import Synchronization

/// The changes of a stream's readable content between two moments.
package struct ContentChanges: Sendable {
    /// The objects that look different. Each was made, changed or deleted by any device, or an own change of it is now
    /// confirmed.
    var keys: Set<[UInt8]> = []
    /// True if every object may look different, and not only those in `objects`.
    package var isReset = false

    /// The names of the objects that look different.
    package var objects: [ObjectName] { keys.map { ObjectName($0) } }

    var isEmpty: Bool { keys.isEmpty && !isReset }

    mutating func add(_ other: ContentChanges) {
        keys.formUnion(other.keys)
        isReset = isReset || other.isReset
    }
}

/// The readable content of one stream, without a hold on the client.
package struct StreamContent: Sendable {
    fileprivate let content: ClientContent
    fileprivate let opening: StreamOpening
    fileprivate let report: StreamSnapshot.DamageReport
}

extension SyncStream {
    /// The readable content, without a hold on the client.
    package var content: StreamContent {
        StreamContent(content: client.content, opening: opening, report: client.damageReport)
    }
}

/// Repeated reads of one stream, each with exactly the changes since the read before. Safe on any thread. It does not
/// hold the client, and ends when it is released.
///
/// A batch of `SyncStream.changes()` says what has changed, but a read that follows it may already show later changes.
/// Here a moment and its changes are taken together, so that several reads never mix two moments.
package final class StreamObservation: Sendable {
    private let stream: StreamContent
    private let observer = ContentObserver()

    /// Begins the observation. The first read gets a reset.
    ///
    /// - Throws: `closed` if the stream or the client is closed.
    package init(_ stream: StreamContent) throws(ReelError) {
        self.stream = stream
        try stream.content.add(observer, to: stream.opening)
    }

    /// The number of changes of the content so far. It may grow without a change of an object.
    package var version: Int { observer.version }

    /// Waits until `version` is greater than a value. Returns also if the task is cancelled, or the stream is closed.
    package func wait(after version: Int) async { await observer.wait(after: version) }

    /// Calls `body` with the present moment, and with the changes since the last call. Calls must not overlap.
    ///
    /// - Parameters:
    ///   - always: true if `body` is called also if nothing has changed.
    ///   - body: reads objects. After an error the next call gets a reset.
    /// - Throws: The error of `body`. `closed` if the stream or the client is closed. A code that begins with `store_`
    ///   if the store failed.
    package func read(always: Bool, _ body: (StreamSnapshot, ContentChanges) throws -> Void) throws {
        let news = try stream.content.news(for: observer, of: stream.opening, always: always, stream.report)
        guard let (snapshot, changes) = news else { return }
        do {
            try body(snapshot, changes)
        } catch {
            observer.add(ContentChanges(isReset: true))
            throw error
        }
    }
}

/// One observer of a stream's readable content.
final class ContentObserver: Sendable {
    private typealias Waiter = CheckedContinuation<Void, Never>

    private struct State {
        /// The changes that were not read yet; nil: none. It may be empty if only the completeness has changed.
        var pending: ContentChanges? = ContentChanges(isReset: true)
        var version = 0
        /// True if the version does not count the last change yet.
        var isSignalDue = false
        var isEnded = false
        var waits = 0
        var waiters: [Int: Waiter] = [:]
    }

    private let state = Mutex(State())

    var version: Int { state.withLock { $0.version } }

    func add(_ changes: ContentChanges) {
        state.withLock { state in
            state.isSignalDue = true
            if state.pending == nil { state.pending = changes } else { state.pending?.add(changes) }
        }
    }

    /// Returns the changes that were not read yet, and forgets them; nil: nothing has changed.
    func take() -> ContentChanges? { state.withLock { $0.pending.take() } }

    /// Resumes the calls that wait, if the content has changed.
    ///
    /// - Parameter isEnd: true if the stream is closed. No call waits after that.
    func signal(isEnd: Bool = false) {
        let waiters = state.withLock { state in
            state.isEnded = state.isEnded || isEnd
            guard state.isSignalDue || isEnd else { return [Waiter]() }
            state.isSignalDue = false
            state.version += 1
            defer { state.waiters = [:] }
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.resume() }
    }

    func wait(after version: Int) async {
        let number = state.withLock { state in
            state.waits += 1
            return state.waits
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    if Task.isCancelled || state.isEnded || state.version > version { return true }
                    state.waiters[number] = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: number) }?.resume()
        }
    }
}

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
