import ReelCore
import ReelLog
import ReelNet
import ReelNode
import Synchronization

// Snapshots, deltas and rests. Concurrent requests for the same lines share one result.
extension SnapshotNode {
    /// Answers with a snapshot, a delta, or the rest of one that was cut: 304 if the client holds the current one, else
    /// the lines. Clients that ask for the same lines at the same time share them. On the exchange's loop.
    func answerWithLines(
        _ request: StateRequest,
        after: Seq,
        beyond cut: SnapshotCut? = nil,
        _ keeper: PartitionSupervisor,
        _ exchange: HTTPExchange
    ) {
        let (epoch, reader, stream) = (log.epoch, reader(of: keeper), request.stream)
        do throws(Problem) {
            try Self.check(keeper, epoch, request)
        } catch {
            return exchange.respond(error.response)
        }
        let needed = max(keeper.now.seqNeeded(by: request), after)
        guard exchange.request.headers["if-none-match"] != nil, request.preamble.isEmpty else {
            return shareLines(request, from: needed, after: after, beyond: cut, keeper, exchange)
        }
        exchange.loop.offload {
            Result { () throws(Problem) in
                do { return try reader.seq(of: stream) } catch { throw Self.problem(of: error, keeper) }
            }
        } then: { [self] seq in
            switch seq {
            case .failure(let problem): exchange.respond(problem.response)
            case .success(let seq):
                // The client may hold everything that this node has, but not the seq that it asks for.
                guard seq >= needed,
                    let held = exchange.request.held(etag: Self.etag(epoch, seq))
                else {
                    return shareLines(request, from: needed, after: after, beyond: cut, keeper, exchange)
                }
                let headers: HTTPHeaders = ["etag": held, "cache-control": "no-cache"]
                exchange.respond(HTTPResponse(status: 304, headers: headers))
            }
        }
    }

    /// Answers with shared lines. `needed` is the lowest seq as of which the lines may be.
    private func shareLines(
        _ request: StateRequest,
        from needed: Seq,
        after: Seq,
        beyond cut: SnapshotCut?,
        _ keeper: PartitionSupervisor,
        _ exchange: HTTPExchange
    ) {
        let (epoch, reader, openResponses, openSpools) = (log.epoch, reader(of: keeper), openResponses, openSpools)
        let spoolMs = settings.spoolMs
        let (stream, payer) = (request.stream, request.payer)
        let question = LinesQuestion(stream: stream, after: after, cut: cut)
        let isTaken = lines.ask(question, on: exchange.loop) {
            guard let permit = openResponses.take(for: payer) else { return nil }
            return { [self] in
                Result { () throws(Problem) in
                    defer { withExtendedLifetime(permit) {} }
                    // The file may have been set aside since the request arrived.
                    try Self.check(keeper, epoch, nil)
                    let made: StateReader.Lines
                    do {
                        made = try reader.lines(of: stream, after: after, beyond: cut)
                    } catch {
                        throw Self.problem(of: error, keeper)
                    }
                    guard made.spool.memory == nil else { return SharedLines(made, nil) }
                    guard let permit = openSpools.take() else { throw tooManyAnswers() }
                    return SharedLines(made, permit)
                }
            }
        } then: { [self] result in
            guard exchange.isOpen else { return false }
            do throws(Problem) {
                let made = try result.get()
                guard needed <= made.lines.seq else { throw StateReader.behind(made.lines.seq, needed) }
                let etag = Self.etag(epoch, made.lines.seq)
                var share: ResponseLimiter.Place?
                if made.lines.spool.memory == nil {
                    share = spoolReaders.take(for: payer)
                    guard share != nil else { throw tooManyAnswers() }
                }
                let answer = SpooledResponse(made, preamble: request.preamble, etag: etag, share, withinMs: spoolMs)
                answer.send(through: exchange)
            } catch {
                exchange.respond(error.response)
            }
            return true
        }
        if !isTaken { exchange.respond(tooManyAnswers().response) }
    }

    struct LinesQuestion: Hashable {
        var stream: StreamName
        var after: Seq
        var cut: SnapshotCut?
    }

    /// Lines that were made once, for all clients that get them.
    final class SharedLines: Sendable {
        let lines: StateReader.Lines
        /// The permit of the spool file, held until its last reader has ended; nil: the lines are in memory.
        private let permit: ResponseLimiter.Place?

        init(_ lines: StateReader.Lines, _ permit: ResponseLimiter.Place?) {
            self.lines = lines
            self.permit = permit
        }
    }
}
