import ReelCore
public import ReelNet

/// A load run in this process. All clients of the plan run on one event loop.
///
///     let load = try LoadRun(plan)
///     let report = try await load.run()
public final class LoadRun: Sendable {
    /// The loop of all clients.
    public let loop: EventLoop
    private let stage: LoopBound<LoadStage>

    /// Checks addresses, streams and file descriptors before the run.
    public init(_ plan: LoadPlan) throws {
        guard !plan.urls.isEmpty, !plan.streams.isEmpty else {
            throw LoadFailure(.plan, "found no gateway or no stream, expected at least one of each")
        }
        guard plan.rate > 0, plan.rate.isFinite else {
            throw LoadFailure(.plan, "found a rate of \(plan.rate) events/s, expected more than none")
        }
        let gateways = try LoadGateways(plan)
        try DescriptorLimit.reserve(plan.sockets + DescriptorLimit.spare, for: "\(plan.sockets) sockets")
        let loop = try EventLoop()
        self.loop = loop
        stage = try loop.sync { LoopBound(LoadStage(plan, gateways, on: loop), on: loop) }
    }

    deinit {
        loop.stop()
    }

    /// Connects, publishes as the plan says, waits until everything is acked and has arrived, and returns the report.
    /// Call it once. `progress` is called on the loop, about once a second.
    public func run(progress: (@Sendable (LoadProgress) -> Void)? = nil) async throws -> LoadReport {
        let result: Result<LoadReport, LoadFailure> = await withCheckedContinuation { continuation in
            loop.execute { [stage] in stage.value.start(progress) { continuation.resume(returning: $0) } }
        }
        return try result.get()
    }

    /// Ends the publishing. `run` returns once all running work has finished.
    public func stop() {
        loop.execute { [stage] in stage.value.stop() }
    }

    /// Returns the present counts.
    public func statistics() async throws -> LoadStatistics {
        try await loop.run { [stage] in stage.value.statistics }
    }
}

/// The reason why a load run has no result.
public struct LoadFailure: Error, Sendable {
    /// The kind of failure.
    public enum Code: Sendable {
        /// The plan is not valid.
        case plan
        /// There are not enough file descriptors.
        case descriptors
        /// No gateway answered.
        case unreachable
        /// Gateways answered, and all of them refuse the token.
        case unauthorized
        /// The histories cannot be written.
        case history
    }

    /// The kind of failure.
    public let code: Code
    /// The details: what was found, what was expected.
    public let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// Returns the failure of a run in which no gateway has accepted a client.
    static func shutOut(_ code: Code, _ urls: [String], _ reason: String) -> LoadFailure {
        let rest =
            code == .unauthorized
            ? " (\(ErrorCode.unauthorized.rawValue))"
            : "; check the address, or ask `reel doctor --url \(urls.first ?? "URL")`"
        return LoadFailure(code, "no gateway of \(urls.joined(separator: ", ")) let a client in: \(reason)\(rest)")
    }
}
