internal import ReelCore

// The outcomes of own events that a state has covered.
extension SyncClient {
    /// The pause before a node is asked again.
    private static let outcomesRetryMs: Int64 = 1_000
    /// The timeout of an answer. A node waits up to ten seconds for the fold of a snapshot node.
    private static let outcomesMs: Int64 = 12_000

    /// Notes the own events that a state has covered, so that their outcomes are asked for.
    ///
    /// - Parameters:
    ///   - fold: the state.
    ///   - after: the last seq that was folded before it.
    ///   - stream: the stream.
    func noteCovered(by fold: Fold, after: Seq, _ stream: StreamState) {
        var events: [EventID: Int64] = [:]
        for entry in stream.outbox.entries {
            guard let author = entry.author, let site = fold.site(author.site), site.op >= author.op else { continue }
            events[author] = entry.number
        }
        guard !events.isEmpty else { return }
        if stream.covered?.epoch != fold.epoch {
            settleCovered(stream)
            stream.covered = CoveredEvents(fold.epoch)
        }
        stream.covered?.add(events, after: after, last: fold.seq)
    }

    /// Asks for the outcomes of covered events, if there are any and no question is running.
    func askOutcomes(_ stream: StreamState) {
        guard let covered = stream.covered, stream.outcomeQuestion == nil, !isClosed else { return }
        guard let site = covered.site else {
            stream.covered = nil
            return
        }
        guard let node = link?.node ?? failover.peer() else { return settleCovered(stream) }
        let (name, page) = (stream.name, EventsPage())
        let target =
            "/v1/streams/\(name)/events?after=\(covered.position)&epoch=\(covered.epoch)&limit=\(Self.fetchEvents)"
            + "&models=&site=\(site)&outcome=1"
        let request = transport.get(from: node, target, token: token) { [weak self] response in
            self?.assumeIsolated { $0.toldOutcomes(response, page, site, name) }
        }
        let deadline = after(Self.outcomesMs) { client in
            guard let stream = client.opened[name] else { return }
            client.outcomesFailed(ReelError(.logUnavailable, "no answer"), site, stream)
        }
        stream.outcomeQuestion = OutcomeQuestion(request: request, deadline: deadline)
    }

    private func toldOutcomes(_ response: TransportResponse, _ page: EventsPage, _ site: Site, _ name: StreamName) {
        guard let stream = opened[name], stream.outcomeQuestion != nil, !isClosed else { return }
        if case .body(let bytes) = response { counters.bytesReceived += Int64(bytes.count) }
        do throws(ReelError) {
            guard let events = try page.received(response, name) else { return }
            guard var covered = stream.covered, events.epoch == covered.epoch else {
                throw ReelError(.epochChanged, "found outcomes of another log")
            }
            var outcomes = try covered.take(events.frame.events)
            if covered.answered(to: events.to) { outcomes += covered.giveUp(site) }
            stream.covered = covered
            endOutcomeQuestion(stream)
            settle(outcomes, stream)
            askOutcomes(stream)
        } catch {
            outcomesFailed(error, site, stream)
        }
    }

    private func outcomesFailed(_ error: ReelError, _ site: Site, _ stream: StreamState) {
        endOutcomeQuestion(stream)
        let mayCome = [.logUnavailable, .nodeBehind, .overloaded, .rateLimited].contains(error.code)
        let isLast = stream.covered?.failed() == true
        if !mayCome || isLast, let outcomes = stream.covered?.giveUp(site) { settle(outcomes, stream) }
        let name = stream.name
        let pause = after(Self.outcomesRetryMs) { client in
            guard let stream = client.opened[name] else { return }
            client.endOutcomeQuestion(stream)
            client.askOutcomes(stream)
        }
        stream.outcomeQuestion = OutcomeQuestion(request: pause, deadline: pause)
    }

    private func endOutcomeQuestion(_ stream: StreamState) {
        stream.outcomeQuestion?.cancel()
        stream.outcomeQuestion = nil
    }

    /// Settles all covered events by what the state shows, because nobody can be asked.
    func settleCovered(_ stream: StreamState) {
        endOutcomeQuestion(stream)
        guard var covered = stream.covered.take() else { return }
        settle(covered.giveUp(), stream)
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
    let deadline: any TransportHandle

    func cancel() {
        request.cancel()
        deadline.cancel()
    }
}
