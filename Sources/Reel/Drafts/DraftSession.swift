internal import ReelClient
internal import ReelCore
internal import Synchronization

/// The engine of a draft: it queues own edits, and takes the edits of others, one after the other.
///
/// Each round is one call of `SyncStream.publish(making:)`. In the turn of the client that queues the event, it reads
/// the content, moves the own edits over what others have changed, and makes the event of the result. So an event
/// always counts the content as the client shows it, and is never stale when it is queued. Edits that are made while a
/// round waits for the disk are the next round.
final class DraftSession<View: DraftView>: Sendable {
    typealias Content = View.Content

    private struct State {
        var view: View
        var log: DraftLog<Content>
        /// The number of own edits, and the number of those that are durable.
        var edits = 0
        var stored = 0
        /// The number of own edits that are durable once the round ends; nil: the round does not queue all of them.
        var storing: Int?
        /// The content with the edits that are being queued.
        var next: Content?
        /// True if a round must follow.
        var isDue = false
        var isRunning = false
        /// True if a round has begun.
        var hasBegun = false
        var isClosed = false
        /// The reason why the last round has failed.
        var failure: (any Error)?
        var problem: (any Error)? { failure ?? refused.first?.error }
        var flushes: [(edits: Int, continuation: CheckedContinuation<Void, any Error>)] = []
        var waiters: [(number: Int, continuation: CheckedContinuation<Void, Never>)] = []
        var waits = 0
        var unconfirmed: ArraySlice<PublishHandle> = []
        var isConfirming = false
        var refused: [(event: SyncEvent, error: ReelError)] = []
        /// The task that reads the changes of the stream, and the one that waits for outcomes.
        var listening: Task<Void, Never>?
        var confirming: Task<Void, Never>?
    }

    let stream: SyncStream
    let field: DraftField
    let problems: AsyncStream<(any Error)?>
    private let problemFeed: AsyncStream<(any Error)?>.Continuation
    private let state: Mutex<State>

    init(_ stream: SyncStream, _ field: DraftField) throws {
        (self.stream, self.field) = (stream, field)
        guard let object = try stream.object(field.object) else {
            throw ReelError(.noObject, "found no object \(field.object): insert it before it is edited")
        }
        let content: Content = try field.content(of: object)
        state = Mutex(State(view: View(content), log: DraftLog(content)))
        (problems, problemFeed) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        let task = Task { [weak self] in
            guard let changes = await self?.stream.changes() else { return }
            self?.work()
            for await batch in changes {
                guard let self else { return }
                if batch.isReset || batch.objects.contains(self.field.object) { self.work() }
            }
            // The stream or the client has ended, which the next round reports.
            self?.work()
        }
        state.withLock { $0.listening = task }
    }

    /// Ends the draft. Own edits that are not queued yet are queued nevertheless.
    func close() {
        let (tasks, waiters) = state.withLock { state in
            state.isClosed = true
            defer { state.waiters = [] }
            return ([state.listening, state.confirming], state.waiters)
        }
        for task in tasks { task?.cancel() }
        for waiter in waiters { waiter.continuation.resume() }
        problemFeed.finish()
    }

    // MARK: The view

    var problem: (any Error)? { state.withLock { $0.problem } }

    /// Reads or changes the view.
    func withView<R>(_ body: (inout View) throws -> R) rethrows -> R {
        try state.withLock { try body(&$0.view) }
    }

    /// Performs an own edit.
    ///
    /// - Parameters:
    ///   - range: the part that the edit replaces, in the places of the view.
    ///   - body: performs the edit on the view, and returns it. Nil if the view cannot perform it.
    /// - Throws: `range` if the view cannot perform the edit.
    func edit(_ range: Range<Int>, _ body: (inout View) -> Patch<Content>.Hunk?) throws {
        let isNew = try state.withLock { state in
            guard let hunk = body(&state.view) else {
                let (part, whole) = ("\(range.lowerBound)..<\(range.upperBound)", "0..<\(state.view.end)")
                throw ReelError(
                    .range,
                    "found the range \(part) in \(field.object).\(field.name), expected a part of \(whole)"
                        + " that splits no scalar"
                )
            }
            if hunk.isEmpty { return false }
            state.log.edit(hunk)
            state.edits += 1
            return begin(&state)
        }
        if isNew { run() }
    }

    /// Performs the next edit of another author on the view; nil if there is none.
    func take() -> View.Change? {
        state.withLock { state in state.log.take().map { state.view.perform($0) } }
    }

    /// Waits until an edit of another author can be taken. Returns false once the draft has ended, or if the task is
    /// cancelled.
    func arrival() async -> Bool {
        let number = state.withLock { state in
            state.waits += 1
            return state.waits
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    if state.isClosed || !state.log.incoming.isEmpty || Task.isCancelled { return true }
                    state.waiters.append((number, continuation))
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                state.waiters.firstIndex { $0.number == number }.map { state.waiters.remove(at: $0) }
            }
            waiter?.continuation.resume()
        }
        return state.withLock { !$0.isClosed || !$0.log.incoming.isEmpty } && !Task.isCancelled
    }

    // MARK: Rounds

    /// Waits until the own edits made so far are durable.
    func flush() async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            let (isOver, isNew) = state.withLock { state in
                if state.stored >= state.edits { return (true, false) }
                state.flushes.append((state.edits, continuation))
                return (false, begin(&state))
            }
            if isOver { continuation.resume() }
            if isNew { run() }
        }
    }

    /// Makes a round follow.
    private func work() {
        if state.withLock({ begin(&$0) }) { run() }
    }

    /// Notes that a round must follow. Returns true if no rounds are running.
    private func begin(_ state: inout State) -> Bool {
        state.isDue = true
        defer { state.isRunning = true }
        return !state.isRunning
    }

    /// Runs rounds until nothing is left to do. The task holds the session, so that own edits are queued also if the
    /// app has released the draft.
    private func run() {
        Task {
            repeat { await round() } while isAnotherDue()
        }
    }

    /// Returns true if another round must follow. Otherwise the rounds end.
    private func isAnotherDue() -> Bool {
        state.withLock { state in
            state.isRunning = state.isDue
            return state.isDue
        }
    }

    private func round() async {
        let isFirst = state.withLock { state in
            defer { (state.isDue, state.hasBegun) = (false, true) }
            return !state.hasBegun
        }
        if isFirst { await takePending() }
        do {
            let handle = try await stream.publish { [self] present in try step(present) }
            ended(handle)
        } catch {
            failed(error)
        }
    }

    /// Takes the content that the client shows, and returns the event of the own edits. Called by the client.
    private func step(_ present: PresentObjects) throws -> SyncEvent? {
        guard let object = try present.object(field.object.model, id: field.object.id) else {
            let isDeleted = try present.isDeleted(field.object.model, id: field.object.id)
            let what = isDeleted ? "a deleted object" : "no object"
            throw ReelError(isDeleted ? .deleted : .noObject, "found \(what), expected \(field.object)")
        }
        let content: Content = try field.content(of: object)
        // Only a round changes this part of the log, so the difference is found without the lock.
        let difference = Patch.difference(from: state.withLock { $0.log.synced }, to: content)
        let (edits, waiters) = state.withLock { state in
            state.log.receive(content, by: difference)
            let edits = state.log.send()
            state.storing = state.log.local.isEmpty ? state.edits : nil
            let waiters = state.log.incoming.isEmpty ? [] : state.waiters
            state.waiters.removeFirst(waiters.count)
            return (edits, waiters)
        }
        for waiter in waiters { waiter.continuation.resume() }
        if edits.isEmpty { return nil }
        let next = edits.applied(to: content)
        state.withLock { $0.next = next }
        return field.event(edits, of: object, from: content, to: next)
    }

    private func ended(_ handle: PublishHandle) {
        let hasEvent = !handle.event.changes.isEmpty
        let flushes = state.withLock { state in
            if hasEvent { state.log.sendingEnded(state.next) }
            state.next = nil
            if let storing = state.storing { state.stored = storing }
            if !state.log.local.isEmpty { state.isDue = true }
            report(nil, &state)
            return takeFlushes(&state)
        }
        for flush in flushes { flush.resume() }
        if hasEvent { confirm([handle]) }
    }

    private func failed(_ error: any Error) {
        let flushes = state.withLock { state in
            state.log.sendingEnded(nil)
            state.next = nil
            report(error, &state)
            let flushes = state.flushes
            state.flushes = []
            return flushes
        }
        for flush in flushes { flush.continuation.resume(throwing: error) }
    }

    private func takeFlushes(_ state: inout State) -> [CheckedContinuation<Void, any Error>] {
        let stored = state.stored
        defer { state.flushes.removeAll { $0.edits <= stored } }
        return state.flushes.filter { $0.edits <= stored }.map(\.continuation)
    }

    private func report(_ failure: (any Error)?, _ state: inout State) {
        if failure == nil, state.failure == nil { return }
        state.failure = failure
        problemFeed.yield(state.problem)
    }

    // MARK: Outcomes

    /// Waits for the outcomes of edits that an earlier draft has queued, also in an earlier run of the app.
    private func takePending() async {
        confirm(
            await stream.pending().filter { handle in
                handle.event.changes.contains { change in
                    ObjectName(change.model, id: change.id) == field.object && change.operations[field.name] != nil
                }
            }
        )
    }

    /// Waits for the outcomes of queued edits. The task does not hold the session.
    private func confirm(_ handles: [PublishHandle]) {
        let begins = state.withLock { state in
            state.unconfirmed += handles
            if state.unconfirmed.isEmpty || state.isConfirming || state.isClosed { return false }
            state.isConfirming = true
            return true
        }
        guard begins else { return }
        let task = Task { [weak self] in
            while let handle = self?.nextUnconfirmed() {
                guard let outcome = try? await handle.outcome() else { return }
                self?.settle(handle, outcome)
            }
        }
        state.withLock { $0.confirming = task }
    }

    private func nextUnconfirmed() -> PublishHandle? {
        state.withLock { state in
            if state.unconfirmed.isEmpty { state.isConfirming = false }
            return state.unconfirmed.first
        }
    }

    private func settle(_ handle: PublishHandle, _ outcome: PublishOutcome) {
        state.withLock { state in
            state.unconfirmed.removeFirst()
            // Elements removed at the front are released only when the rest is copied.
            if state.unconfirmed.isEmpty { state.unconfirmed = [] }
            let error: ReelError
            switch outcome {
            case .applied, .consumed, .superseded: return
            case .rejected(let code, let seq):
                error = ReelError(code, "the stream has rejected an edit of \(field.object).\(field.name) at \(seq)")
            case .failed(let failure), .unknown(let failure): error = failure
            }
            state.refused.append((handle.event, error))
            problemFeed.yield(state.problem)
        }
    }

    /// Returns what the stream has refused of own edits since the last call: the inserted texts in their wire form,
    /// with the errors. Texts that follow each other are joined.
    func takeRefused() -> [(text: String, error: ReelError)] {
        let refused = state.withLock { state in
            let refused = state.refused
            state.refused = []
            if !refused.isEmpty { problemFeed.yield(state.problem) }
            return refused
        }
        var (texts, end) = ([(text: String, error: ReelError)](), Int64(-1))
        for (event, error) in refused {
            for change in event.changes {
                var splices: [TextSplice] = []
                if case .splice(let own)? = change.operations[field.name] { splices = own }
                if let text = change.fields[field.name]?.string { splices = [TextSplice(at: 0, inserting: text)] }
                for splice in splices where !splice.text.isEmpty {
                    if splice.offset == end, let last = texts.last, last.error.code == error.code {
                        texts[texts.count - 1].text += splice.text
                    } else {
                        texts.append((splice.text, error))
                    }
                    end = splice.offset + Int64(splice.text.unicodeScalars.count)
                }
            }
        }
        return texts
    }
}
