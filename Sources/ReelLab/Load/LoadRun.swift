import ReelCore
public import ReelNet

/// A load run in this process: as many clients as the plan says, all on one event loop.
///
///     let load = try LoadRun(plan)
///     let report = try await load.run()
public final class LoadRun: Sendable {
    /// The loop that all clients live on.
    public let loop: EventLoop
    private let stage: LoopBound<LoadStage>

    /// Checks what can be checked before: addresses, streams, file descriptors.
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

    /// Connects, publishes for as long as the plan says, waits until everything is acked and has arrived, and says how
    /// it went. Once. `progress` is called on the loop, about once a second.
    public func run(progress: (@Sendable (LoadProgress) -> Void)? = nil) async throws -> LoadReport {
        let result: Result<LoadReport, LoadFailure> = await withCheckedContinuation { continuation in
            loop.execute { [stage] in stage.value.start(progress) { continuation.resume(returning: $0) } }
        }
        return try result.get()
    }

    /// Ends the publishing; `run` returns once what is under way has come to its end.
    public func stop() {
        loop.execute { [stage] in stage.value.stop() }
    }

    /// What has been counted so far.
    public func statistics() async throws -> LoadStatistics {
        try await loop.run { [stage] in stage.value.statistics }
    }
}

/// Why a load run says nothing about a cluster.
public struct LoadFailure: Error, Sendable {
    /// What kind of trouble.
    public enum Code: Sendable {
        /// The plan cannot be meant.
        case plan
        /// Not enough file descriptors.
        case descriptors
        /// No gateway answered.
        case unreachable
        /// Gateways answered, and none of them takes the token.
        case unauthorized
        /// The histories cannot be written.
        case history
    }

    /// What kind of trouble.
    public let code: Code
    /// What was found, what was expected.
    public let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// No gateway has let a client in.
    static func shutOut(_ code: Code, _ urls: [String], _ reason: String) -> LoadFailure {
        let rest =
            code == .unauthorized
            ? " (\(ErrorCode.unauthorized.rawValue))"
            : "; check the address, or ask `reel doctor --url \(urls.first ?? "URL")`"
        return LoadFailure(code, "no gateway of \(urls.joined(separator: ", ")) let a client in: \(reason)\(rest)")
    }
}
