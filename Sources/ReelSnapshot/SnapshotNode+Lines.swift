import ReelCore
import ReelLog
import ReelNet
import ReelNode
import Synchronization

// Snapshots and deltas, which are made once for all who ask for the same at the same time.
extension SnapshotNode {
    /// What a client holds already needs no lines; all others who ask the same meanwhile get the same ones.
    func answerWithLines(
        _ request: StateRequest,
        after: Seq,
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
            return shareLines(request, from: needed, after: after, keeper, exchange)
        }
        exchange.loop.offload {
            Result { () throws(Problem) in
                do { return try reader.seq(of: stream) } catch { throw Self.problem(of: error, keeper) }
            }
        } then: { [self] seq in
            switch seq {
            case .failure(let problem): exchange.respond(problem.response)
            case .success(let seq):
                // What the client holds may be all that this node has, and not what was asked for.
                guard seq >= needed,
                    let held = exchange.request.held(etag: Self.etag(epoch, seq))
                else {
                    return shareLines(request, from: needed, after: after, keeper, exchange)
                }
                let headers: HTTPHeaders = ["etag": held, "cache-control": "no-cache"]
                exchange.respond(HTTPResponse(status: 304, headers: headers))
            }
        }
    }

    /// `needed`: the seq that the lines must be true of, or a later one.
    private func shareLines(
        _ request: StateRequest,
        from needed: Seq,
        after: Seq,
        _ keeper: PartitionSupervisor,
        _ exchange: HTTPExchange
    ) {
        let (epoch, reader, openResponses, openSpools) = (log.epoch, reader(of: keeper), openResponses, openSpools)
        let spoolMs = settings.spoolMs
        let (stream, payer) = (request.stream, request.payer)
        let question = LinesQuestion(stream: stream, after: after)
        let isTaken = lines.ask(question, on: exchange.loop) {
            guard let place = openResponses.take(for: payer) else { return nil }
            return { [self] in
                Result { () throws(Problem) in
                    defer { withExtendedLifetime(place) {} }
                    // A file may have been put aside since the question came.
                    try Self.check(keeper, epoch, nil)
                    let made: StateReader.Lines
                    do {
                        made = try reader.lines(of: stream, after: after)
                    } catch {
                        throw Self.problem(of: error, keeper)
                    }
                    guard made.spool.memory == nil else { return SharedLines(made, nil) }
                    guard let place = openSpools.take() else { throw tooManyAnswers() }
                    return SharedLines(made, place)
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
    }

    /// Lines that were made once, for all who are answered with them.
    final class SharedLines: Sendable {
        let lines: StateReader.Lines
        /// The place of their file, as long as somebody reads it; nil: they are in memory.
        private let place: ResponseLimiter.Place?

        init(_ lines: StateReader.Lines, _ place: ResponseLimiter.Place?) {
            self.lines = lines
            self.place = place
        }
    }
}
