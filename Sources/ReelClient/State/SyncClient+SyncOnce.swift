internal import ReelCore

/// The result of `SyncClient.syncOnce(deadline:)`.
public struct SyncReport: Sendable, Hashable, Codable {
    /// True if every open stream is up to date, and no own event waits.
    public internal(set) var isComplete: Bool
    /// The number of events that were received for the first time.
    public internal(set) var received: Int64
    /// The number of own events that have left the queue. Merged events count as one.
    public internal(set) var settled: Int
    /// The status of the client at the end, with the events that still wait and the problems.
    public internal(set) var status: SyncStatus
}

extension SyncClient {
    /// Sends what waits and reads what is new, for a background task with little time. Returns as soon as every open
    /// stream is up to date and no own event waits, or after the deadline.
    ///
    /// It reads only open streams, and opens those with waiting events. Open every other stream that it should read
    /// before the call; `streams` lists them. The client stays connected; `close` ends the connection.
    ///
    /// - Parameter deadline: the longest time to take.
    /// - Returns: The work that was done, and the status at the end.
    /// - Throws: `closed` if the client ends first. A code that begins with `store_` if the store failed.
    ///   `CancellationError` if the task is cancelled.
    public func syncOnce(deadline: Duration) async throws -> SyncReport {
        for held in try streams() where held.pendingCount > 0 { try open(held.id) }
        showStatuses()
        let (received, waiting) = (counters.eventsReceived, status.pendingCount)
        if !isSynced { try await waitUntilSynced(deadline) }
        let status = status
        return SyncReport(
            isComplete: isSynced,
            received: counters.eventsReceived - received,
            settled: max(0, waiting - status.pendingCount),
            status: status
        )
    }

    private var isSynced: Bool { resources.board.isSynced }

    private func waitUntilSynced(_ deadline: Duration) async throws {
        waits += 1
        let number = waits
        let timer = after(max(0, deadline.milliseconds)) { $0.endSync(number, .success(())) }
        resources.deadlinesMs[number] = transport.nowMs + deadline.milliseconds
        defer {
            timer.cancel()
            resources.deadlinesMs[number] = nil
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                if Task.isCancelled { return continuation.resume(throwing: CancellationError()) }
                if isClosed { return continuation.resume(throwing: failure ?? .closed) }
                resources.syncs[number] = continuation
            }
        } onCancel: {
            Task { await self.endSync(number, .failure(CancellationError())) }
        }
    }

    private func endSync(_ number: Int, _ result: Result<Void, any Error>) {
        resources.syncs.removeValue(forKey: number)?.resume(with: result)
    }

    /// Resumes the calls that wait until everything is synced, if it is.
    func resumeSyncs() {
        guard !resources.syncs.isEmpty, isSynced else { return }
        for sync in resources.syncs.values { sync.resume() }
        resources.syncs = [:]
    }
}
