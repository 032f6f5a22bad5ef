internal import ReelCore

// The outcomes of own events that a state has covered.
extension SyncClient {
    /// The pause before a node is asked again.
    private static let outcomesRetryMs: Int64 = 1_000
    /// The timeout of each piece of an answer. A node waits up to ten seconds for the fold of a snapshot node.
    private static let outcomesMs: Int64 = 12_000
    /// The maximum number of events in an answer. They are of this device, and need not arrive again.
    private static let outcomesPerPage = 100

    /// Notes the own events that a state has covered, so that their outcomes are asked for.
    ///
    /// - Parameters:
    ///   - fold: the state.
    ///   - after: the last seq that was folded before it.
    ///   - stream: the stream.
    func noteCovered(by fold: Fold, after: Seq, _ stream: StreamState) {
        var events: [CoveredEvents.Event] = []
        for entry in stream.outbox.entries {
            guard let author = entry.author, let site = fold.site(author.site), site.op >= author.op,
                stream.publications[entry.number] != nil
            else { continue }
            // An event that was sent from an earlier state may lie below the state that the device had at last.
            let sent = entry.firstSent.flatMap { $0.epoch == fold.epoch ? $0.seq : nil } ?? after
            let content = entry.event.encoded(base: entry.base, author: author)
            events.append(.init(author: author, number: entry.number, after: sent, content: content))
        }
        stream.covered.add(events, epoch: fold.epoch, last: fold.seq)
    }

    /// Asks the connected node for the outcomes of covered events, if there are any and no question is running.
    func askOutcomes(_ stream: StreamState) {
        guard let question = stream.covered.question, stream.outcomeQuestion == nil, !isClosed,
            let link, link.welcome != nil
        else { return }
        let (name, page) = (stream.name, EventsPage())
        let target =
            "/v1/streams/\(name)/events?after=\(question.position)&epoch=\(question.epoch)"
            + "&limit=\(Self.outcomesPerPage)&models=&site=\(question.site)&outcome=1"
        let request = transport.get(from: link.node, target, token: token) { [weak self] response in
            self?.assumeIsolated { $0.toldOutcomes(response, page, name) }
        }
        stream.outcomeQuestion = OutcomeQuestion(request: request, deadline: outcomeDeadline(name))
    }

    private func outcomeDeadline(_ name: StreamName) -> any TransportHandle {
        after(Self.outcomesMs) { client in
            guard let stream = client.opened[name] else { return }
            let error = ReelError(.logUnavailable, "no answer within \(Self.outcomesMs) ms")
            client.outcomesFailed(error, stream)
        }
    }

    private func toldOutcomes(_ response: TransportResponse, _ page: EventsPage, _ name: StreamName) {
        guard let stream = opened[name], stream.outcomeQuestion != nil, !isClosed else { return }
        if case .body(let bytes) = response { counters.bytesReceived += Int64(bytes.count) }
        do throws(ReelError) {
            guard let events = try page.received(response, name) else {
                stream.outcomeQuestion?.deadline.cancel()
                stream.outcomeQuestion?.deadline = outcomeDeadline(name)
                return
            }
            guard events.epoch == stream.covered.question?.epoch else {
                throw ReelError(.epochChanged, "found outcomes of another log")
            }
            let outcomes = try stream.covered.answered(events.frame.events, to: events.to)
            endOutcomeQuestion(stream)
            settle(outcomes, stream)
            askOutcomes(stream)
        } catch {
            outcomesFailed(error, stream)
        }
    }

    /// Asks again after a pause. Without a connection the next one is asked, and nothing has failed.
    private func outcomesFailed(_ error: ReelError, _ stream: StreamState) {
        endOutcomeQuestion(stream)
        guard link?.welcome != nil else { return }
        settle(stream.covered.failed(error), stream)
        guard stream.covered.question != nil else { return }
        let name = stream.name
        let pause = after(Self.outcomesRetryMs) { client in
            guard let stream = client.opened[name] else { return }
            client.endOutcomeQuestion(stream)
            client.askOutcomes(stream)
        }
        stream.outcomeQuestion = OutcomeQuestion(request: pause, deadline: pause)
    }

    /// Ends the running question. It is asked again later.
    func endOutcomeQuestion(_ stream: StreamState) {
        stream.outcomeQuestion?.cancel()
        stream.outcomeQuestion = nil
    }

    /// Settles all covered events by what the state shows, because the stream is removed.
    func settleCovered(_ stream: StreamState) {
        endOutcomeQuestion(stream)
        settle(stream.covered.giveUp(), stream)
    }

    private func settle(_ outcomes: [(number: Int64, outcome: PublishOutcome)], _ stream: StreamState) {
        for (number, outcome) in outcomes { settle(number, outcome, stream) }
    }

    /// Tells the app the outcome of an event.
    func settle(_ number: Int64, _ outcome: PublishOutcome, _ stream: StreamState) {
        for item in stream.publications.removeValue(forKey: number) ?? [] {
            item.settled(outcome)
            guard outcome.isLoss else { continue }
            notify(.notApplied(stream: stream.name.description, item.event, outcome))
        }
    }
}

/// A running request for outcomes, or the pause before the next one.
struct OutcomeQuestion {
    let request: any TransportHandle
    var deadline: any TransportHandle

    func cancel() {
        request.cancel()
        deadline.cancel()
    }
}
