import Glibc
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
        try Self.reserveDescriptors(plan.sockets)
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

    /// A descriptor for each socket, and some for the process itself.
    private static func reserveDescriptors(_ sockets: Int) throws(LoadFailure) {
        let needed = rlim_t(sockets + 64)
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        guard limit.rlim_cur < needed else { return }
        guard limit.rlim_max >= needed else {
            throw LoadFailure(
                .descriptors,
                "\(sockets) sockets need \(needed) file descriptors, and this process may have \(limit.rlim_max); "
                    + "allow more with `ulimit -n \(needed)` (as root, or by LimitNOFILE or limits.conf)"
            )
        }
        limit.rlim_cur = needed
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
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

    static func unreachable(_ urls: [String], _ reason: String) -> LoadFailure {
        LoadFailure(.unreachable, "no gateway of \(urls.joined(separator: ", ")) let a client in: \(reason)")
    }
}
