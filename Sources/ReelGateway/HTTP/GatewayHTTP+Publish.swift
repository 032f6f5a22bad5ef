import ReelCore
import ReelNet
import ReelNode

// The routes that accept events.
extension GatewayHTTP {
    /// The outcomes that a client asks for with `outcome`.
    private enum OutcomeWish {
        /// No outcomes.
        case none
        /// The outcomes, if a snapshot node answers in time.
        case ifKnown
        /// The outcomes, or an error.
        case required
    }

    /// The content of a request's body.
    private struct Body: Sendable {
        var publish: ClientFrame.Publish
        /// The one-request site that was made for the events; nil: they name their own.
        var ownSite: Site?
        /// For a sync, the seq that the client holds.
        var after = Seq.none
        /// The events after they were checked and stamped; nil: the loop does that.
        var checked: [Result<PublishLedger.Offer, ReelError>]?
    }

    /// `POST …/events`: publishes events and answers with the acks and the outcomes. `failed` answers with an error
    /// that this method does not throw.
    func publish(
        _ match: Router<Endpoint>.Match,
        _ request: HTTPRequest,
        _ exchange: HTTPExchange,
        _ access: Access,
        failed: @escaping (Problem) -> Void
    ) throws(Problem) {
        let stream = try match.stream
        let wish: OutcomeWish =
            switch try match.integer("outcome", from: 0, to: 1) {
            case nil: .ifKnown
            case 0: .none
            default: .required
            }
        let key = try IdempotencyKey(request.head.headers)
        let keySite = key?.site(of: access.subject, in: stream)
        read(request, of: stream, exchange, access) { most throws(Problem) in
            var publish = try request.json { (object) throws(ReelError) in
                ClientFrame.Publish(
                    stream: stream,
                    epoch: try object.epoch(),
                    events: try object.required("events", try object.events(atMost: most))
                )
            }
            guard !publish.events.isEmpty else { throw Problem(.badRequest, "found no events, expected at least one") }
            let own = try OneRequest(publish.events, site: keySite ?? .randomOneRequest(), hasKey: keySite != nil)
            if let own { publish.events = own.events }
            return Body(publish: publish, ownSite: own?.site)
        } then: { [self] body throws(Problem) in
            try take(body, exchange, access) { [self] acks in
                answer(body.publish, acks, hasKey: keySite != nil, wish, exchange, access)
            }
        } failed: {
            failed($0)
        }
    }

    /// Answers a publish after all of its events are in the log. If the request has a key, the acks name
    /// the copies that count.
    private func answer(
        _ sent: ClientFrame.Publish,
        _ acks: [ServerFrame.Acked],
        hasKey: Bool,
        _ wish: OutcomeWish,
        _ exchange: HTTPExchange,
        _ access: Access
    ) {
        var acks = acks
        if hasKey {
            let ring = gateway.rings[sent.stream.partition(of: gateway.context.partitions)]
            for (index, ack) in acks.enumerated() {
                guard let first = ring.firstCopy(of: ack, in: sent.stream) else { continue }
                guard first.isSame else {
                    let answer = PublishAnswer(sent, epoch: gateway.context.epoch, acks, hasKey: true)
                    return exchange.respond(answer.response(conflict: ack, with: first.seq))
                }
                acks[index].seq = first.seq
            }
        }
        tell(PublishAnswer(sent, epoch: gateway.context.epoch, acks, hasKey: hasKey), wish, exchange, access)
    }

    private func tell(
        _ answer: PublishAnswer,
        _ wish: OutcomeWish,
        _ exchange: HTTPExchange,
        _ access: Access
    ) {
        if wish == .none { return exchange.respond(answer.response()) }
        // A request with `outcome=1` was refused before, for lack of this right.
        if let refusal = access.refusalToRead(answer.stream) {
            return exchange.respond(answer.response(without: Problem(refusal)))
        }
        let settings = gateway.context.settings
        let question = OutcomeQuestions.Question(
            acks: answer.acks,
            stream: answer.stream,
            authorization: exchange.request.headers["authorization"],
            withinMs: wish == .required ? settings.peerMs : settings.outcomeMs,
            isRequired: wish == .required
        )
        gateway.ask(question) { result in
            guard exchange.isOpen else { return }
            switch result {
            case .success(let outcomes): exchange.respond(answer.response(outcomes))
            case .failure(let problem) where wish == .required:
                exchange.respond(answer.response(refusing: problem))
            case .failure(let problem): exchange.respond(answer.response(without: problem))
            }
        }
    }

    /// `POST …/sync`: publishes events, then answers with a line of their acks and the lines of a delta that includes
    /// them.
    func sync(
        _ stream: StreamName,
        _ request: HTTPRequest,
        _ exchange: HTTPExchange,
        _ access: Access,
        failed: @escaping (Problem) -> Void
    ) throws(Problem) {
        guard try IdempotencyKey(request.head.headers) == nil else {
            throw Problem(.badRequest, "found Idempotency-Key, which only `POST …/events` knows")
        }
        read(request, of: stream, exchange, access) { most throws(Problem) in
            try request.json { (object) throws(ReelError) in
                let epoch = try object.required("epoch", try object.epoch())
                let events = try object.events(atMost: most) ?? []
                let after = try object.required("after", try object.integer("after", from: -1))
                return Body(publish: ClientFrame.Publish(stream: stream, epoch: epoch, events: events), after: after)
            }
        } then: { [self] body in
            sync(body, exchange, access, failed: failed)
        } failed: {
            failed($0)
        }
    }

    private func sync(_ body: Body, _ exchange: HTTPExchange, _ access: Access, failed: @escaping (Problem) -> Void) {
        let (stream, after) = (body.publish.stream, body.after)
        let epoch = body.publish.epoch ?? gateway.context.epoch
        func answer(_ acks: [ServerFrame.Acked]) {
            let kind: StateRequest.Kind = after == .none ? .snapshot(epoch: epoch) : .delta(after: after, epoch: epoch)
            var question = StateRequest(kind, of: stream)
            question.seqMin = acks.map(\.seq).max() ?? .none
            question.preamble = PublishAnswer.opening(stream, epoch, acks).finishLine()
            ask(question, exchange)
        }
        // The position is checked first: a client that has to start again must not have published anything.
        let wanted = ReadRequest(stream: stream, epoch: epoch, lowest: .max, highest: after)
        gateway.admit(wanted) { [self] refusal in
            guard exchange.isOpen else { return }
            do throws(Problem) {
                if let refusal { throw Problem(refusal) }
                if body.publish.events.isEmpty { return answer([]) }
                try take(body, exchange, access, then: answer)
            } catch {
                failed(error)
            }
        }
    }

    /// Reads a body with `parse`, which gets the maximum number of events. The events of a large body are also checked
    /// and stamped on the thread that reads it.
    private func read(
        _ request: HTTPRequest,
        of stream: StreamName,
        _ exchange: HTTPExchange,
        _ access: Access,
        _ parse: @escaping @Sendable (_ most: Int) throws(Problem) -> Body,
        then: @escaping (Body) throws(Problem) -> Void,
        failed: @escaping (Problem) -> Void
    ) {
        let payer = Payer(access, exchange.client?.origin ?? Payer.unknownOrigin)
        gateway.largeInput.read(request, of: payer, exchange) { [gateway] in
            let (settings, stamps) = (gateway.context.settings, gateway.publishing.stamps(for: access))
            return { isLarge throws(Problem) in
                do throws(Problem) {
                    var body = try parse(settings.batch)
                    var intake = EventIntake(limit: settings.eventBytes)
                    if isLarge { body.checked = intake.offers(body.publish, stamps.stamp(for: stream)) }
                    return body
                } catch {
                    var problem = error
                    if problem.code == .limit { problem.limit = settings.batch }
                    throw problem
                }
            }
        } then: { result in
            do throws(Problem) { try then(try result.get()) } catch { failed(error) }
        }
    }

    /// Publishes the events and calls `then` once all of them are durable. Otherwise answers the exchange with the
    /// reason.
    private func take(
        _ body: Body,
        _ exchange: HTTPExchange,
        _ access: Access,
        then: @escaping ([ServerFrame.Acked]) -> Void
    ) throws(Problem) {
        // The token may have expired during a wait for a position.
        if access.hasExpired(nowMs: gateway.loop.wallMs) { throw Problem(ReelError.tokenExpired) }
        let publish = body.publish
        let waiting = HTTPPublish(gateway, publish.stream, exchange, count: publish.events.count, then: then)
        gateway.publishing.add(waiting)
        gateway.publishing.publish(
            publish,
            checked: body.checked,
            with: access,
            from: waiting.number,
            exchange.client?.origin ?? Payer.unknownOrigin,
            ref: nil,
            ownSite: body.ownSite,
            refusesUseless: true
        ) { waiting.nacked($0) }
    }
}
