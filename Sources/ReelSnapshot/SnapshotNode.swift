import Glibc
internal import ReelBase
public import ReelCore
public import ReelLog
public import ReelNet
public import ReelNode
import ReelSQLite
import Synchronization

/// A snapshot node without its sockets. It folds all partitions of a log into SQLite, one file per partition, and
/// answers requests about their state.
public final class SnapshotNode: StateSource {
    let log: any EventLog
    let settings: SnapshotSettings
    let keepers: [PartitionSupervisor]
    private let metrics: SnapshotMetrics
    private let lock: FolderLock
    /// The limit of responses that are being made.
    let openResponses: ResponseLimiter
    /// The limit of spooled responses: they are too large for memory, and the clients that ask for the same share one.
    let openSpools: ResponseLimiter
    /// The limit of requests that wait for the fold.
    let foldWaiters: ResponseLimiter
    /// The limit of clients that read spooled responses; it bounds the share of each payer.
    let spoolReaders: ResponseLimiter
    let limits: LimitMeters
    /// Snapshots and deltas in the making, by stream and by the seq that they follow.
    let lines = RequestCoalescer<LinesQuestion, Result<SharedLines, Problem>>()

    /// Locks the folder for this process and begins to fold. The log object must belong to this node alone: when
    /// folding is slower than the log, the queue holds up all tails of that object. `number` and `deployment` are also
    /// written to the files, for the case that only the files are left.
    ///
    /// - Parameters:
    ///   - log: The log to fold.
    ///   - number: The number of logs that were the current one before this log.
    ///   - deployment: The deployment of the log; nil: the log is the first of its deployment.
    ///   - settings: The settings of the node.
    ///   - logger: Receives the log lines.
    ///   - metrics: Receives the metrics.
    /// - Throws: `SnapshotError` if another process has the folder or the folder cannot be made.
    public init(
        log: any EventLog,
        number: Int = 0,
        deployment: Deployment? = nil,
        settings: SnapshotSettings,
        logger: Logger,
        metrics: Metrics
    ) throws {
        self.log = log
        self.settings = settings
        lock = try FolderLock(folder: settings.folder)
        try EpochFolders.make(log.epoch, in: settings.folder)
        openResponses = ResponseLimiter(most: settings.openResponses)
        openSpools = ResponseLimiter(most: settings.openSpools)
        foldWaiters = ResponseLimiter(most: settings.foldWaiters)
        spoolReaders = ResponseLimiter(most: .max / 2, share: max(1, settings.openSpools / 4))
        limits = LimitMeters(metrics)
        let counted = SnapshotMetrics(metrics, epoch: log.epoch, logger: logger)
        self.metrics = counted
        let closed = Mutex(log.partitions)
        let budget = CacheBudget(bytes: settings.cachedBytes, partitions: log.partitions)
        keepers = (0..<log.partitions).map {
            PartitionSupervisor(
                log: log,
                number: number,
                deployment: deployment ?? Deployment(beginningWith: log.epoch),
                partition: $0,
                settings: settings,
                budget: budget,
                logger: logger,
                metrics: counted
            ) {
                // The state of the previous epoch is no longer needed once all partitions of the new epoch have folded
                // their seeds.
                let isLast = closed.withLock { closed in
                    closed -= 1
                    return closed == 0
                }
                if isLast { EpochFolders.removeEnded(before: log.epoch, in: settings.folder) }
            }
        }
        SnapshotMetrics.watch(keepers, metrics)
        do {
            for keeper in keepers { try keeper.start() }
        } catch {
            close()
            throw error
        }
    }

    /// The last seq of each partition that is folded and written in all streams.
    public var positions: [Seq] { keepers.map { $0.now.seq } }

    /// True if the end of the epoch is folded in at least one partition.
    public var epochHasEnded: Bool {
        keepers.contains { if case .ended = $0.now.phase { true } else { false } }
    }

    /// The reasons why partitions are not folded, each with its code; empty if all are folded.
    var problems: [String] {
        keepers.compactMap { keeper in
            keeper.now.problem.map { "partition \(keeper.identity.partition): \($0.code.rawValue): \($0.message)" }
        }
    }

    /// The health of the folded state in each partition. From any thread.
    public var health: RoleHealth {
        var problems = problems
        if openResponses.isFull || openSpools.isFull {
            problems.append("as many answers are under way as there may be")
        }
        return RoleHealth(
            .snapshot,
            log: logState,
            detail: problems.isEmpty ? nil : problems.joined(separator: "; "),
            partitions: keepers.map { keeper in
                let status = keeper.now
                return PartitionHealth(
                    seq: status.seq,
                    goal: status.goal,
                    isOpen: status.isVerified,
                    stop: status.problem.map { problem in
                        var stop = PartitionHealth.Stop(problem.code, problem.message)
                        if stop.isLoss { stop.lost = status.last }
                        return stop
                    }
                )
            }
        )
    }

    /// The records that the log has lost in a partition, as the folded state shows; nil: none. From any thread.
    public func loss(of partition: Int) -> ReelError? { keepers[partition].loss }

    /// True if this node can answer a request. A request with a minimum seq counts as answerable: it waits until that
    /// seq is folded.
    public func canAnswer(_ request: StateRequest) -> Bool {
        let status = keepers[request.stream.partition(of: log.partitions)].now
        return status.refusal == nil && status.lastingStop == nil
            && (request.seqMin != .none || status.seq(of: request.stream) >= status.goal)
    }

    /// Blocks until each file was compared with the log or has a problem that prevents it, at most `ms` milliseconds. A
    /// gateway of the same process that starts afterwards acknowledges nothing into a log that has lost records. Not on
    /// an event loop.
    public func waitUntilCompared(ms: Int64) {
        let until = ContinuousClock.now + .milliseconds(ms)
        while ContinuousClock.now < until, keepers.contains(where: { !$0.now.isVerified && $0.now.problem == nil }) {
            usleep(1_000)
        }
    }

    /// The streams that have at least half of the sites that a stream may have.
    public var crowdedStreams: [CrowdedStream] { keepers.flatMap { $0.now.crowd.streams } }

    /// The state of the log: the worst state that any partition sees.
    var logState: LogState { keepers.logState }

    /// The code of each partition that answers no requests.
    var refusals: [ErrorCode] { keepers.compactMap { $0.now.refusal?.code } }

    /// Stops folding after the batch that is being written, and unlocks the folder. Waits for the threads. Not on an
    /// event loop.
    public func close() {
        for keeper in keepers { keeper.stop() }
        lock.release()
    }

    // MARK: Answers

    /// Answers a request about state through the exchange, now or later. On the exchange's loop.
    public func respond(to request: StateRequest, _ exchange: HTTPExchange) {
        let keeper = keepers[request.stream.partition(of: log.partitions)]
        do throws(Problem) {
            try Self.check(keeper, log.epoch, request.kind.epoch)
        } catch {
            // Waiting can only help where the node has not folded far enough.
            if error.code != .nodeBehind { return exchange.respond(error.response) }
        }
        let (seq, stream) = (request.seqMin, request.stream)
        let isTaken = reach(seq, of: stream, keeper, for: request.payer, on: exchange.loop) { [self] in
            answer(request, keeper, exchange)
        }
        if !isTaken { exchange.respond(tooManyWaits().response) }
    }

    private func answer(_ request: StateRequest, _ keeper: PartitionSupervisor, _ exchange: HTTPExchange) {
        guard exchange.isOpen else { return }
        do throws(Problem) {
            try Self.check(keeper, log.epoch, request)
        } catch {
            return exchange.respond(error.response)
        }
        metrics.answers.add()
        switch request.kind {
        case .snapshot: answerWithLines(request, after: .none, keeper, exchange)
        case .delta(let after, _): answerWithLines(request, after: after, keeper, exchange)
        case .rest(let after, let cut, _): answerWithLines(request, after: after, beyond: cut, keeper, exchange)
        case .object(let model, let id):
            answerWhole(request, keeper, exchange) { try Self.object(model, id, of: request.stream, $0) }
        case .outcomes(let acks, let epoch):
            answerWhole(request, keeper, exchange) { try Self.outcomes(of: acks, request.stream, epoch, $0) }
        case .sites(let after, let limit, _):
            let stream = request.stream
            answerWhole(request, keeper, exchange) { reader in
                let page = try reader.sites(of: stream, after: after, limit: limit)
                var answer = HTTPResponse.json(page.json(of: stream, reader.identity, nowMs: WallClock.nowMs()))
                if page.isUnpublished { answer.headers.add(UnpublishedStream.header, UnpublishedStream.value) }
                return answer
            }
        }
    }

    private func answerWhole(
        _ request: StateRequest,
        _ keeper: PartitionSupervisor,
        _ exchange: HTTPExchange,
        _ body: @escaping @Sendable (StateReader) throws -> HTTPResponse
    ) {
        guard let permit = openResponses.take(for: request.payer) else {
            return exchange.respond(tooManyAnswers().response)
        }
        let epoch = log.epoch
        // The supervisor may set the file aside and begin a new one with less state: the reader checks the seq again.
        let reader = reader(of: keeper, from: keeper.now.seqNeeded(by: request))
        exchange.loop.offload {
            Result { () throws(Problem) in
                try Self.check(keeper, epoch, request)
                do { return try body(reader) } catch { throw Self.problem(of: error, keeper) }
            }
        } then: { result in
            switch result {
            case .failure(let problem): exchange.respond(problem.response)
            case .success(let response): exchange.respond(response)
            }
            withExtendedLifetime(permit) {}
        }
    }

    /// Returns a reader of the partition's file that refuses a state older than `seqMin`.
    func reader(of keeper: PartitionSupervisor, from seqMin: Seq = .none) -> StateReader {
        StateReader(place: keeper.place, identity: keeper.identity, folder: settings.folder, seqMin: seqMin)
    }

    /// Answers `GET …/head`: the seqs of a stream that this node has folded. On the exchange's loop.
    func respondWithHead(of stream: StreamName, _ exchange: HTTPExchange) {
        let partition = stream.partition(of: log.partitions)
        let (log, keeper) = (log, keepers[partition])
        let reader = reader(of: keeper)
        exchange.loop.offload {
            Result { () throws(Problem) in
                try Self.check(keeper, log.epoch, nil)
                do {
                    let ends = try reader.ends(of: stream)
                    return (first: Self.first(of: log, partition, ends), head: ends.head)
                } catch {
                    throw Self.problem(of: error, keeper)
                }
            }
        } then: { result in
            switch result {
            case .failure(let problem): exchange.respond(problem.response)
            case .success(let ends):
                var writer = JSONObjectWriter()
                writer.member("stream", stream.description)
                writer.member("epoch", log.epoch.description)
                writer.member("partition", partition)
                writer.member("first", ends.first)
                writer.member("head", ends.head)
                exchange.respond(.json(writer.finish()))
            }
        }
    }

    /// Returns the first seq of a partition that can be read: from the log, or from this node's index if the log is
    /// unavailable.
    private static func first(of log: any EventLog, _ partition: Int, _ ends: StateReader.Ends) -> Seq {
        guard let bounds = try? log.bounds(partition) else { return ends.head < 0 ? .none : ends.indexed }
        return bounds.first < 0 ? .none : max(bounds.first, ends.seedsEnd)
    }

    /// The size at which an events response ends, in bytes; it may exceed this by one page. Its `to` is the last seq
    /// that it covers.
    private static let rangeBytes = 4 << 20

    /// Answers with the events after a seq from the index, page by page. On the exchange's loop.
    ///
    /// - Parameters:
    ///   - after: The seq before the first event.
    ///   - wanted: The epoch that the client expects; nil: any.
    ///   - limit: The maximum number of events and barriers.
    ///   - payer: The payer of the response.
    func respondWithEvents(
        of stream: StreamName,
        after: Seq,
        epoch wanted: Epoch?,
        limit: Int,
        for payer: Payer,
        _ exchange: HTTPExchange
    ) {
        let reply = EventRangeResponse(
            EventRangeBody(from: after + 1, head: .none),
            of: stream,
            epoch: log.epoch,
            partition: stream.partition(of: log.partitions),
            through: exchange
        )
        addPage(to: reply, of: stream, upTo: nil, epoch: wanted, limit: limit, for: payer, exchange)
    }

    private func addPage(
        to reply: EventRangeResponse,
        of stream: StreamName,
        upTo head: Seq?,
        epoch wanted: Epoch?,
        limit: Int,
        for payer: Payer,
        _ exchange: HTTPExchange
    ) {
        guard exchange.isOpen else { return }
        guard let permit = openResponses.take(for: payer) else { return reply.fail(tooManyAnswers()) }
        let (epoch, keeper) = (log.epoch, keepers[stream.partition(of: log.partitions)])
        let reader = reader(of: keeper)
        let (after, left) = (reply.answer.to, limit - reply.answer.count)
        exchange.loop.offload {
            Result { () throws(Problem) in
                try Self.check(keeper, epoch, wanted)
                do {
                    return try reader.page(of: stream, after: after, to: head ?? largestInteger, limit: left)
                } catch {
                    throw Self.problem(of: error, keeper)
                }
            }
        } then: { [self] result in
            withExtendedLifetime(permit) {}
            switch result {
            case .failure(let problem): reply.fail(problem)
            case .success(let page):
                let head = head ?? page.head
                reply.answer.head = head
                reply.append(page.chunk) { [self] in
                    let answer = (to: reply.answer.to, count: reply.answer.count, bytes: reply.answer.byteCount)
                    guard answer.to < head, answer.count < limit, answer.bytes < Self.rangeBytes else {
                        return reply.end()
                    }
                    addPage(to: reply, of: stream, upTo: head, epoch: wanted, limit: limit, for: payer, exchange)
                }
            }
        }
    }

    /// Throws unless this partition can answer requests of the epoch `wanted` at all; nil: any epoch.
    static func check(_ keeper: PartitionSupervisor, _ epoch: Epoch, _ wanted: Epoch?) throws(Problem) {
        if let wanted, wanted != epoch { throw epochChanged(from: wanted, to: epoch) }
        if let refusal = keeper.now.refusal { throw Problem(refusal.code, refusal.publicMessage) }
    }

    /// Returns the error of a request with another epoch than this node has.
    static func epochChanged(from wanted: Epoch, to epoch: Epoch) -> Problem {
        var problem = Problem(.epochChanged, "found epoch \(wanted), expected \(epoch)")
        problem.epoch = epoch
        return problem
    }

    /// Throws unless this partition can answer a request about state. The partition must have folded the seq that the
    /// request needs; without a minimum seq that is the end of the log at the start.
    static func check(_ keeper: PartitionSupervisor, _ epoch: Epoch, _ request: StateRequest) throws(Problem) {
        try check(keeper, epoch, request.kind.epoch)
        let status = keeper.now
        let needed = status.seqNeeded(by: request)
        let seq = status.seq(of: request.stream)
        // If folding has stopped for good, the state becomes ever older.
        if seq < needed {
            var problem = StateReader.behind(seq, needed)
            if let stop = status.problem {
                problem.detail += "; folding has stopped: \(stop.code.rawValue): \(stop.publicMessage)"
            }
            throw problem
        }
        guard request.seqMin == .none, let stop = status.lastingStop else { return }
        var problem = Problem(
            .nodeBehind,
            "this node has folded to seq \(seq); folding has stopped: \(stop.code.rawValue):"
                + " \(status.problem?.publicMessage ?? ""); ask another node"
        )
        problem.seq = seq
        throw problem
    }

    static func etag(_ epoch: Epoch, _ seq: Seq) -> String { "\"\(epoch):\(seq)\"" }

    private static func object(
        _ model: String,
        _ id: String,
        of stream: StreamName,
        _ reader: StateReader
    ) throws -> HTTPResponse {
        guard let object = try reader.object(of: stream, model: model, id: id) else {
            var problem = Problem(.notFound, "there is no object \(model) \(id) in stream \(stream)")
            problem.isUnpublished = try !reader.knows(stream)
            if problem.isUnpublished { problem.detail += ", to which no event was ever published" }
            throw problem
        }
        guard !object.isDeleted else {
            var problem = Problem(.deleted, "the object \(model) \(id) was deleted", status: 410)
            problem.seq = object.seq
            throw problem
        }
        return .json(object.json)
    }

    static func problem(of error: any Error, _ keeper: PartitionSupervisor) -> Problem {
        switch error {
        case let problem as Problem: return problem
        case let error as SnapshotError:
            if error.publicMessage != error.message { keeper.unanswered(error.message) }
            return Problem(error.code, error.publicMessage)
        case let error as ReelError: return Problem(error)
        case let error as SQLiteError where error.kind == .cannotOpen:
            return Problem(.nodeBehind, "this node has not begun partition \(keeper.identity.partition) yet; ask again")
        case let room as Spool.NoRoom:
            keeper.lacksRoom(room)
            return Problem(.nodeBehind, "the node has no disk space to prepare the response; ask again, or a peer")
        case let damage as StateReader.Damage:
            keeper.doubt(damage)
            let advice = "ask again, or a peer"
            return Problem(.nodeBehind, "the snapshot's file is damaged and is made from the log again; \(advice)")
        default:
            keeper.unanswered("\(error)")
            return Problem(.nodeBehind, "the snapshot's file cannot be read now; ask again, or a peer")
        }
    }
}
