internal import ReelClient
internal import ReelCore
internal import Synchronization

// Virtual time, which advances only here.
extension TestWorld {
    /// The real time for which the world waits for a running `renewToken`, whose duration is not virtual.
    private static let tokenWait = Duration.seconds(1)

    /// The real time for which `settle` waits for code of the app.
    private static let bodyWait = Duration.seconds(10)

    /// The virtual time since the world was made.
    public var now: Duration { .milliseconds(network.loop.nowMs) }

    /// Advances the virtual time. Timers fire and messages arrive in the order of their times. Returns when everything
    /// that they have caused in the clients is done.
    public func advance(_ duration: Duration) async {
        let endMs = network.loop.nowMs + duration.wholeMs
        var overdue: Set<TokenCall> = []
        await rest(&overdue)
        while network.loop.step(upTo: endMs) { await rest(&overdue) }
        network.loop.advance(to: endMs)
    }

    /// Waits until nothing is on its way, and every connected device has sent everything and has the same state of each
    /// stream as the node. Devices that are cut, or not running, do not count. Tasks of the app that react to changes
    /// may still run.
    ///
    /// - Parameter limit: the longest virtual time to wait.
    /// - Throws: `NotSettled` with what is missing. `CancellationError` if the task is cancelled.
    public func settle(limit: Duration = .seconds(300)) async throws {
        let endMs = network.loop.nowMs + limit.wholeMs
        var overdue: Set<TokenCall> = []
        while true {
            try Task.checkCancellation()
            await rest(&overdue)
            var missing = await missing()
            if missing.isEmpty { missing = await differences() }
            if missing.isEmpty { return }
            guard network.loop.step(upTo: endMs) else { throw notSettled(after: limit, missing) }
        }
    }

    /// Runs code of the app that waits for the node, such as `outcome()`, and settles until it has returned.
    ///
    ///     let outcome = try await world.settle { try await todo.insert(TodoTask(id: "2")).outcome() }
    ///
    /// The code runs in a task of its own, so a local `var` must be captured: `{ [milk] in … insert(milk) … }`.
    ///
    /// The time also advances to the deadline of a `flush` or `syncOnce` that waits on a device whose network is cut.
    ///
    /// - Parameters:
    ///   - limit: the longest virtual time to wait at once.
    ///   - body: the code. Its task is cancelled if this call throws.
    /// - Returns: The result of `body`.
    /// - Throws: The error of `body`. What `settle` throws, also if everything is settled and `body` has not returned
    ///   ten seconds of real time later.
    public func settle<T: Sendable>(
        limit: Duration = .seconds(300),
        during body: @escaping @Sendable () async throws -> T
    ) async throws -> T {
        let done = Done()
        let task = Task {
            defer { done.set() }
            return try await body()
        }
        do {
            let end = ContinuousClock.now + Self.bodyWait
            let start = now
            while !done.isSet {
                try await settle(limit: limit)
                guard ContinuousClock.now < end else {
                    let what =
                        "the code that was passed to `settle` has not returned after \(Self.bodyWait) of real time, and"
                        + " no connected device waits for the node"
                    throw notSettled(after: now - start, [what])
                }
                if let pause = await pauseUntilDeadline(), pause <= limit {
                    await advance(pause)
                } else {
                    try await Task.sleep(for: .milliseconds(1))
                }
            }
        } catch {
            // The task may not end by its cancellation, so nothing waits for it.
            task.cancel()
            throw error
        }
        let result = try await task.value
        try await settle(limit: limit)
        return result
    }

    /// A call of `renewToken` that takes longer than the world waits.
    private struct TokenCall: Hashable {
        var client: ObjectIdentifier
        var number: Int
    }

    /// Waits until all work at the present time is done.
    private func rest(_ overdue: inout Set<TokenCall>) async {
        let end = ContinuousClock.now + Self.tokenWait
        while true {
            await network.loop.idle()
            var calls: Set<TokenCall> = []
            for device in devices where device.isRunning {
                let client = device.client
                let number = await network.loop.run { client.assumeIsolated { $0.tokenQuestionNumber } }
                if let number { calls.insert(TokenCall(client: ObjectIdentifier(client), number: number)) }
            }
            if calls.isSubset(of: overdue) { return }
            if ContinuousClock.now >= end {
                overdue.formUnion(calls)
            } else {
                try? await Task.sleep(for: .milliseconds(1))
            }
        }
    }

    /// Returns the time until the next deadline of a call that waits on a device; nil: no such call waits.
    private func pauseUntilDeadline() async -> Duration? {
        var nextMs: Int64?
        for device in devices where device.isRunning {
            let client = device.client
            let deadlineMs = await network.loop.run { client.assumeIsolated { $0.deadlineMs } }
            nextMs = [nextMs, deadlineMs].compactMap(\.self).min()
        }
        // A timer takes at least a millisecond.
        return nextMs.map { .milliseconds(max(1, $0 - network.loop.nowMs)) }
    }

    private var connected: [TestDevice] { devices.filter { $0.isRunning && !network.isCut($0.name) } }

    private func notSettled(after duration: Duration, _ missing: [String]) -> NotSettled {
        let cut = devices.map(\.name).filter(network.isCut)
        return NotSettled(limit: duration, missing: missing, cut: cut)
    }

    /// Returns what the connected devices still wait for.
    private func missing() async -> [String] {
        var missing: [String] = []
        for device in connected {
            let client = device.client
            let (streams, status) = await network.loop.run {
                client.assumeIsolated { ($0.standings(), $0.status) }
            }
            let before = missing.count
            for standing in streams {
                guard let what = self.missing(standing.status, standing.stream) else { continue }
                missing.append("\(device.name), stream \(standing.stream.debugDescription): \(what)")
            }
            if missing.count > before {
                missing += status.problems.filter { $0.stream == nil }.map {
                    "\(device.name): \($0.code.rawValue): \($0.message)"
                }
            }
            let open = Set(streams.map(\.stream))
            for held in (try? await client.streams()) ?? [] where held.pendingCount > 0 && !open.contains(held.id) {
                missing.append(
                    "\(device.name), stream \(held.id.debugDescription): \(Self.count(held.pendingCount)) and the"
                        + " stream is not open: open it in the test"
                )
            }
            let messages = network.inFlight(device.name)
            if messages > 0, missing.count == before {
                missing.append("\(device.name): \(messages) messages are on their way")
            }
        }
        return missing
    }

    private static func count(_ events: Int) -> String {
        events == 1 ? "1 own event waits" : "\(events) own events wait"
    }

    private static func text(_ reason: QueuedEvent.Reason) -> String {
        switch reason {
        case .problem(let code, _): code.rawValue
        case .reading: "the reading of the stream"
        case .turn: "earlier events"
        case .pause(let ms): "a pause of \(ms) ms"
        case .rejection: "the rejection of an earlier event"
        case .answer: "the answer of the node"
        case .confirmation: "the event that is read back"
        }
    }

    /// Returns what an open stream waits for; nil: nothing.
    private func missing(_ status: StreamStatus, _ stream: String) -> String? {
        let last = network.node { node in StreamName(stream).flatMap { node.streams[$0]?.seqs.last } ?? .none }
        var parts: [String] = []
        if status.pendingCount > 0 { parts.append(Self.count(status.pendingCount)) }
        if !status.isUpToDate {
            parts.append("the connection is \(status.connection) and the content is \(status.content)")
        } else if status.seq < last {
            parts.append("the device is at seq \(status.seq) and the node at seq \(last)")
        }
        if parts.isEmpty { return nil }
        if let reason = status.pending.reason { parts.append("the oldest waits because of \(Self.text(reason))") }
        parts += status.problems.map { "\($0.code.rawValue): \($0.message)" }
        return parts.joined(separator: "; ")
    }

    /// Returns the streams of which a connected device has another state than the node.
    private func differences() async -> [String] {
        var differences: [String] = []
        for device in connected {
            let client = device.client
            let digests = await network.loop.run {
                client.assumeIsolated { client in
                    client.standings().map { ($0.stream, client.digest(ofStream: $0.stream)) }
                }
            }
            for (stream, digest) in digests {
                let expected = network.node { node -> UInt64? in
                    guard let name = StreamName(stream) else { return nil }
                    var fold = node.fold(of: name)
                    return fold.digest()
                }
                if digest != expected {
                    differences.append(
                        "\(device.name), stream \(stream.debugDescription): the state differs from that of the node"
                    )
                }
            }
        }
        return differences
    }
}

/// Tells if code of the app has returned.
private final class Done: Sendable {
    private let state = Mutex(false)

    var isSet: Bool { state.withLock { $0 } }
    func set() { state.withLock { $0 = true } }
}

/// The error of `TestWorld.settle`: what the devices still wait for.
public struct NotSettled: Error, Sendable, CustomStringConvertible {
    /// The virtual time that `settle` has waited.
    public let limit: Duration
    /// The missing parts, one text each. A text names the device, the stream, and what they wait for.
    public let missing: [String]
    /// The names of the devices whose network was cut. `settle` does not wait for them.
    public let cut: [String]

    /// All missing parts, the devices whose network is cut, and what to do.
    public var description: String {
        let cut = cut.map { "the network of \($0) is cut, so \($0) sends and receives nothing" }
        return "not settled after \(limit) of virtual time:\n- " + (missing + cut).joined(separator: "\n- ")
            + "\nHeal the network, end refusals by `heal()`, or cut or kill the devices that cannot settle."
    }
}
