import ReelCore
import ReelLog
public import ReelNet
public import ReelNode

// The list of streams: a page of names from the files of all partitions.
extension SnapshotNode {
    /// The maximum number of searches for one page. A token with many patterns needs one for each pattern and
    /// partition.
    private static let searchesMax = 10_000

    /// Returns true if this node can list the streams of all partitions.
    public func canAnswer(_ request: StreamListRequest) -> Bool {
        keepers.allSatisfy { keeper in
            let status = keeper.now
            return status.refusal == nil && status.lastingStop == nil && status.seq >= status.goal
        }
    }

    /// Answers with a page of the streams that the client may read; see `StateSource.respond`.
    public func respond(to request: StreamListRequest, for access: Access, _ exchange: HTTPExchange) {
        let ranges: [NameRange]
        do throws(Problem) {
            ranges = try request.ranges(for: access)
        } catch {
            return exchange.respond(error.response)
        }
        let payer = Payer(access, exchange.client?.origin ?? Payer.unknownOrigin)
        guard let permit = openResponses.take(for: payer) else { return exchange.respond(tooManyAnswers().response) }
        let epoch = log.epoch
        exchange.loop.offload { [self] in
            Result { () throws(Problem) in try page(of: request, in: ranges) }
        } then: { result in
            switch result {
            case .failure(let problem): exchange.respond(problem.response)
            case .success(let page):
                exchange.respond(.json(ListedStream.body(page.streams, of: epoch, next: page.next)))
            }
            withExtendedLifetime(permit) {}
        }
    }

    /// Returns a page of streams. `next` is the text after which the next page begins; nil: this page is the last.
    func page(
        of request: StreamListRequest,
        in ranges: [NameRange]
    ) throws(Problem) -> (streams: [ListedStream], next: String?) {
        let begun = ranges.drop { $0.last <= request.after }
        let searched = begun.prefix(max(1, Self.searchesMax / keepers.count))
        var streams: [ListedStream] = []
        for keeper in keepers {
            try Self.check(keeper, log.epoch)
            // One additional stream shows that another page follows. Later partitions need no stream after the last of
            // these.
            let bound = streams.count > request.limit ? streams.last?.stream : nil
            do {
                streams += try reader(of: keeper, from: keeper.now.goal).streams(
                    in: searched,
                    after: request.after,
                    bound: bound,
                    limit: request.limit + 1
                )
            } catch {
                throw Self.problem(of: error, keeper)
            }
            streams.sort { $0.stream < $1.stream }
            streams.removeLast(max(0, streams.count - request.limit - 1))
        }
        if streams.count > request.limit {
            streams.removeLast()
            return (streams, streams.last?.stream.description)
        }
        return (streams, searched.endIndex < begun.endIndex ? searched.last?.last : nil)
    }

    /// Throws unless the streams of this partition can be listed.
    private static func check(_ keeper: PartitionSupervisor, _ epoch: Epoch) throws(Problem) {
        do throws(Problem) {
            try check(keeper, epoch, nil)
            let status = keeper.now
            guard status.seq >= status.goal else { throw StateReader.behind(status.seq, status.goal) }
            try checkContinues(keeper)
        } catch {
            var problem = error
            problem.detail = "partition \(keeper.identity.partition): \(problem.detail)"
            throw problem
        }
    }

    /// Throws if this partition cannot be folded further without an operator: its state becomes ever older.
    static func checkContinues(_ keeper: PartitionSupervisor) throws(Problem) {
        let status = keeper.now
        guard status.lastingStop != nil, let problem = status.problem else { return }
        throw Problem(
            .nodeBehind,
            "folding has stopped: \(problem.code.rawValue): \(problem.publicMessage); ask another node"
        )
    }
}
