import ReelCore
import ReelNet
import ReelNode

// What takes events in.
extension GatewayHTTP {
    /// `POST …/events`: answers with the acks, or also with what became of the events.
    func publish(
        _ match: Router<Endpoint>.Match,
        _ request: HTTPRequest,
        _ exchange: HTTPExchange,
        _ access: Access
    ) throws(Problem) {
        let stream = try match.stream
        let wantsOutcome = try match.integer("outcome", from: 0, to: 1) == 1
        let publish = try read(request) { (object, most) throws(ReelError) in
            ClientFrame.Publish(
                stream: stream,
                epoch: try object.epoch(),
                events: try object.required("events", try object.events(atMost: most))
            )
        }
        guard !publish.events.isEmpty else { throw Problem(.badRequest, "found no events, expected at least one") }
        let epoch = gateway.share.epoch
        try take(publish, exchange, access) { [self] acks in
            if wantsOutcome {
                return ask(StateRequest(.outcomes(of: acks, epoch: epoch), of: stream), exchange)
            }
            exchange.respond(.json(Self.answer(stream, epoch, acks).finish()))
        }
    }

    /// `POST …/sync`: takes events, then answers with a line of their acks and the lines of a delta in which they are
    /// folded.
    func sync(
        _ stream: StreamName,
        _ request: HTTPRequest,
        _ exchange: HTTPExchange,
        _ access: Access
    ) throws(Problem) {
        let (publish, epoch, after) = try read(request) { (object, most) throws(ReelError) in
            let epoch = try object.required("epoch", try object.epoch())
            let events = try object.events(atMost: most) ?? []
            let publish = ClientFrame.Publish(stream: stream, epoch: epoch, events: events)
            return (publish, epoch, try object.required("after", try object.integer("after", from: -1)))
        }
        func answer(_ acks: [ServerFrame.Acked]) {
            let kind: StateRequest.Kind = after == .none ? .snapshot(epoch: epoch) : .delta(after: after, epoch: epoch)
            var question = StateRequest(kind, of: stream)
            question.seqMin = acks.map(\.seq).max() ?? .none
            question.preamble = Self.answer(stream, epoch, acks).finishLine()
            ask(question, exchange)
        }
        var failure: Problem?
        var isWaiting = true
        // The position first: who is told to begin anew has published nothing.
        gateway.admit(stream, epoch: epoch, lowest: .max, highest: after) { [self] refusal in
            guard exchange.isOpen else { return }
            do throws(Problem) {
                if let refusal { throw Problem(refusal) }
                if publish.events.isEmpty { return answer([]) }
                try take(publish, exchange, access, then: answer)
            } catch {
                if isWaiting { failure = error } else { exchange.respond(error.response) }
            }
        }
        isWaiting = false
        if let failure { throw failure }
    }

    /// What a request holds, which may have so many events.
    private func read<R>(
        _ request: HTTPRequest,
        _ body: (_ object: JSONObject, _ most: Int) throws(ReelError) -> R
    ) throws(Problem) -> R {
        let most = gateway.share.settings.batch
        do throws(Problem) {
            return try request.json { (object) throws(ReelError) in try body(object, most) }
        } catch {
            var problem = error
            if problem.code == .limit { problem.limit = most }
            throw problem
        }
    }

    private static func answer(
        _ stream: StreamName,
        _ epoch: Epoch,
        _ acks: [ServerFrame.Acked]
    ) -> JSONObjectWriter {
        var writer = JSONObjectWriter()
        writer.member("stream", stream.description)
        writer.member("epoch", epoch.description)
        writer.member("acks", acks) { $0.append(acked: $1) }
        return writer
    }

    /// Publishes, and calls back once all is durable; else the exchange is told why not.
    private func take(
        _ publish: ClientFrame.Publish,
        _ exchange: HTTPExchange,
        _ access: Access,
        then: @escaping ([ServerFrame.Acked]) -> Void
    ) throws(Problem) {
        // A position may have been waited for since it was looked at.
        if access.hasExpired(nowMs: gateway.loop.wallMs) { throw Problem(ReelError.tokenExpired) }
        let waiting = HTTPPublish(gateway, publish.stream, exchange, count: publish.events.count, then: then)
        gateway.publishes[waiting.number] = waiting
        gateway.publish(publish, with: access, from: waiting.number, ref: nil) { waiting.nacked($0) }
    }
}
