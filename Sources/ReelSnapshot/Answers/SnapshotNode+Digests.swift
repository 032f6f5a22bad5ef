import ReelCore
import ReelLog
public import ReelNet
public import ReelNode

// The digests of many streams in one answer: one row of each stream, and no state.
extension SnapshotNode {
    /// Returns true if this node has folded the partitions of all streams of the request.
    public func canAnswer(_ request: DigestsRequest) -> Bool {
        Set(request.streams.map { $0.stream.partition(of: log.partitions) }).allSatisfy { partition in
            let status = keepers[partition].now
            return status.refusal == nil && status.lastingStop == nil && status.seq >= status.goal
        }
    }

    /// Answers with the digests of the streams that the client may read. On the exchange's loop.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - access: the rights of the client.
    ///   - exchange: the exchange of the request. It is answered now or later.
    public func respond(to request: DigestsRequest, for access: Access, _ exchange: HTTPExchange) {
        let readable: [StreamPattern]?
        do throws(Problem) {
            readable = try access.readable(request.readable)
            guard request.epoch == log.epoch else { throw Self.epochChanged(from: request.epoch, to: log.epoch) }
        } catch {
            return exchange.respond(error.response)
        }
        let payer = Payer(access, exchange.client?.origin ?? Payer.unknownOrigin)
        guard let permit = openResponses.take(for: payer) else { return exchange.respond(tooManyAnswers().response) }
        exchange.loop.offload { [self] in
            digests(of: request, readable: readable, access)
        } then: { [epoch = log.epoch] digests in
            exchange.respond(Self.refusal(of: digests)?.response ?? .json(StreamDigest.body(digests, of: epoch)))
            withExtendedLifetime(permit) {}
        }
    }

    /// Returns the digests in the order of the request. Blocks.
    func digests(of request: DigestsRequest, readable: [StreamPattern]?, _ access: Access) -> [StreamDigest] {
        var states: [Int: Result<StreamDigest.State, Problem>] = [:]
        var byPartition: [Int: [Int]] = [:]
        for (index, held) in request.streams.enumerated() {
            if let problem = Self.refusal(to: held.stream, readable: readable, access) {
                states[index] = .failure(problem)
            } else {
                byPartition[held.stream.partition(of: log.partitions), default: []].append(index)
            }
        }
        for (partition, indices) in byPartition {
            let found = self.states(of: indices.map { request.streams[$0] }, in: keepers[partition])
            for (index, state) in zip(indices, found) { states[index] = state }
        }
        return request.streams.enumerated().compactMap { index, held in
            states[index].map { StreamDigest(held.stream, $0) }
        }
    }

    /// Returns the digests of streams of one partition.
    private func states(
        of streams: [DigestsRequest.HeldState],
        in keeper: PartitionSupervisor
    ) -> [Result<StreamDigest.State, Problem>] {
        do throws(Problem) {
            try Self.check(keeper, log.epoch, nil)
            try Self.checkContinues(keeper)
            do {
                return try reader(of: keeper).digests(of: streams, goal: keeper.now.goal)
            } catch {
                throw Self.problem(of: error, keeper)
            }
        } catch {
            return streams.map { _ in .failure(error) }
        }
    }

    /// Returns the reason why the client may not read the stream; nil: it may.
    private static func refusal(
        to stream: StreamName,
        readable: [StreamPattern]?,
        _ access: Access
    ) -> Problem? {
        if let refusal = access.refusalToRead(stream) { return Problem(refusal) }
        guard let readable, !readable.contains(where: { $0.matches(stream) }) else { return nil }
        return Problem(.forbidden, "the token does not give the stream \(stream) to read")
    }

    /// Returns the problem of an answer without any digest that another node may answer; nil: the answer is sent.
    private static func refusal(of digests: [StreamDigest]) -> Problem? {
        var refusal: Problem?
        for digest in digests {
            guard case .failure(let problem) = digest.state else { return nil }
            if refusal == nil, problem.status == 503 || problem.code.isLoss { refusal = problem }
        }
        return refusal
    }
}
