internal import ReelCore

// The queue of a stream: listing, withdrawing, discarding and flushing.
extension SyncClient {
    func queue(of opening: StreamOpening) -> [QueuedEvent] {
        settled(opening).map { queue(of: $0, through: .max) } ?? []
    }

    /// Returns the events of a stream up to a number.
    private func queue(of stream: StreamState, through last: Int64) -> [QueuedEvent] {
        let (nowMs, problem) = (transport.nowMs, problem(of: stream))
        var events: [QueuedEvent] = []
        for entry in stream.outbox.entries {
            if entry.number > last { break }
            if entry.event.isInternal { continue }
            let state: QueuedEvent.State = entry.acked != nil ? .acked : entry.author != nil ? .sent : .waiting
            let event = QueuedEvent(
                id: entry.number,
                stream: stream.name.description,
                event: entry.event,
                sinceMs: entry.sinceMs,
                state: state,
                reason: problem ?? reason(of: entry, state, in: stream, nowMs: nowMs)
            )
            events.append(event)
        }
        return events
    }

    /// Returns the problem that keeps the stream's queue from moving; nil: there is none.
    private func problem(of stream: StreamState) -> QueuedEvent.Reason? {
        let problems = problems.seen(of: stream.name) + problems.seenOfClient()
        let problem = problems.first { $0.code != .storeLost }
        if let problem { return .problem(problem.code, message: problem.message) }
        return connectedNode == nil ? .problem(.offline, message: "no node is connected") : nil
    }

    /// Returns the reason why an entry still waits.
    func waitingReason(of entry: Outbox.Entry, in stream: StreamState) -> QueuedEvent.Reason {
        let state: QueuedEvent.State = entry.acked != nil ? .acked : entry.author != nil ? .sent : .waiting
        return problem(of: stream) ?? reason(of: entry, state, in: stream, nowMs: transport.nowMs)
    }

    private func reason(
        of entry: Outbox.Entry,
        _ state: QueuedEvent.State,
        in stream: StreamState,
        nowMs: Int64
    ) -> QueuedEvent.Reason {
        switch state {
        case _ where entry.covered != nil: return .confirmation
        case .acked: return .confirmation
        case .sent where entry.number <= stream.outbox.sentThrough: return .answer
        case .sent, .waiting:
            if entry.author == nil, entry.waits != nil { return .rejection }
            if stream.view == nil || !stream.sync.maySend(at: stream.seq) { return .reading }
            if let nextMs = stream.outbox.nextSendMs, nextMs > nowMs { return .pause(ms: nextMs - nowMs) }
            return .turn
        }
    }

    // MARK: Steering

    func withdraw(_ number: Int64, of opening: StreamOpening) async throws {
        let stream = try stream(opening)
        try stream.outbox.withdraw(number)
        try await commit(stream)
    }

    func discard(_ opening: StreamOpening) async throws -> Int {
        let stream = try stream(opening)
        let count = stream.outbox.entries.count
        stream.outbox.discard()
        let removed = count - stream.outbox.entries.count
        try await commit(stream)
        return removed
    }

    /// Returns an open stream after the events that were enqueued before.
    func stream(_ opening: StreamOpening) throws(ReelError) -> StreamState {
        takeEnqueued()
        try checkOpen()
        guard let stream = opened[opening] else { throw .streamIsClosed(opening.name.description) }
        return stream
    }

    private func commit(_ stream: StreamState) async throws {
        markDirty(stream)
        try await committed(stream)
    }

    // MARK: Flushing

    func flush(_ openings: [StreamOpening], deadline: Duration) async throws {
        let endMs = transport.nowMs + deadline.milliseconds
        let targets = try openings.compactMap { opening in
            try settledStream(opening).outbox.entries.last.map { (opening, $0.number) }
        }
        for (opening, last) in targets {
            do {
                try await waitUntilSettled(through: last, of: opening, endMs: endMs)
            } catch is FlushTimeout {
                let waiting = targets.compactMap { opening, last in
                    opened[opening].map { queue(of: $0, through: last) }
                }
                throw FlushTimeout(waiting: waiting.flatMap(\.self))
            }
        }
    }

    /// Waits until no entry up to a number is in the queue. Throws an empty `FlushTimeout` at `endMs`.
    private func waitUntilSettled(through last: Int64, of opening: StreamOpening, endMs: Int64) async throws {
        let stream = try settledStream(opening)
        guard stream.waits(through: last) else { return }
        waits += 1
        let number = waits
        let timer = after(max(0, endMs - transport.nowMs)) { $0.endFlush(number, opening, FlushTimeout(waiting: [])) }
        resources.deadlinesMs[number] = endMs
        defer {
            timer.cancel()
            resources.deadlinesMs[number] = nil
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                // The handler may have left the executor in between.
                if settled(opening) === stream, !stream.waits(through: last) { return continuation.resume() }
                if Task.isCancelled { return continuation.resume(throwing: CancellationError()) }
                if isClosed || opened[opening] !== stream {
                    return continuation.resume(throwing: failure ?? closedError(of: opening))
                }
                stream.flushes.append(.init(number: number, last: last, continuation: continuation))
            }
        } onCancel: {
            Task { await self.endFlush(number, opening, CancellationError()) }
        }
    }

    private func endFlush(_ number: Int, _ opening: StreamOpening, _ error: any Error) {
        guard let stream = opened[opening], let index = stream.flushes.firstIndex(where: { $0.number == number }) else {
            return
        }
        stream.flushes.remove(at: index).continuation.resume(throwing: error)
    }

    /// Resumes the flushes whose events have left the queue.
    func resumeFlushes(_ stream: StreamState) {
        guard !stream.flushes.isEmpty else { return }
        for flush in stream.flushes where !stream.waits(through: flush.last) { flush.continuation.resume() }
        stream.flushes.removeAll { !stream.waits(through: $0.last) }
    }
}

extension StreamState {
    /// A call that waits until no entry up to a number is in the queue.
    struct Flush {
        var number: Int
        var last: Int64
        var continuation: CheckedContinuation<Void, any Error>
    }

    /// Returns true if an entry up to this number is in the queue.
    fileprivate func waits(through last: Int64) -> Bool { outbox.entries.first.map { $0.number <= last } ?? false }
}

extension Duration {
    /// The whole milliseconds, between 0 and about 10,000 years.
    var milliseconds: Int64 {
        let (seconds, attoseconds) = components
        return max(0, min(seconds, 1 << 38)) * 1_000 + max(0, attoseconds) / 1_000_000_000_000_000
    }
}
