internal import ReelCore

// The outcomes of own events that a state has covered.
extension SyncClient {
    /// The maximum number of streams whose outcomes are asked for at the same time.
    private static let outcomesAtOnce = 4
    /// The timeout of each piece of an answer. A node waits up to ten seconds for the fold of a snapshot node.
    private static let outcomesMs: Int64 = 12_000
    /// The maximum number of events in an answer. They are of this device, and need not arrive again.
    private static let outcomesPerPage = 100

    /// Asks for the contents and outcomes of the own events that a state has covered.
    ///
    /// - Parameters:
    ///   - fold: the state.
    ///   - after: the last seq that was folded before it; none: it is not known.
    ///   - stream: the stream.
    func noteCovered(by fold: Fold, after: Seq, _ stream: StreamState) {
        // Whatever was asked of a former state is asked of this one.
        stream.forgetQuestions()
        guard stream.outbox.coveredCount > 0 else { return }
        var events: [CoveredEvents.Event] = []
        for entry in stream.outbox.entries {
            guard let author = entry.author, entry.covered != nil else { continue }
            // An event that was sent from an earlier state may lie below the state that the device had at last.
            let sent = entry.firstSent.flatMap { $0.epoch == fold.epoch ? $0.seq : nil } ?? after
            let content = entry.event.encoded(base: entry.base, author: author)
            events.append(.init(author: author, number: entry.number, after: sent, content: content))
        }
        stream.covered.add(events, epoch: fold.epoch, last: fold.seq)
    }

    /// Asks the connected node for the outcomes of covered events, if there are any and no question is running.
    func askOutcomes(_ stream: StreamState) {
        guard let question = stream.covered.question, !stream.handles.isAskingOutcomes, !isClosed,
            let link, link.welcome != nil,
            opened.values.count(where: \.handles.isRequestingOutcomes) < Self.outcomesAtOnce
        else { return }
        let (name, page) = (stream.name, EventsPage())
        let target =
            "/v1/streams/\(name)/events?after=\(question.position)&epoch=\(question.epoch)"
            + "&limit=\(Self.outcomesPerPage)&models=&site=\(question.site)&outcome=1"
        let request = transport.get(from: link.node, target, token: token) { [weak self] response in
            self?.assumeIsolated { $0.toldOutcomes(response, page, name) }
        }
        stream.handles.keep(outcomes: request, until: outcomeDeadline(name))
    }

    private func outcomeDeadline(_ name: StreamName) -> any TransportHandle {
        after(Self.outcomesMs) { client in
            guard let stream = client.opened[name] else { return }
            let error = ReelError(.logUnavailable, "no answer within \(Self.outcomesMs) ms")
            client.outcomesFailed(error, stream)
        }
    }

    private func toldOutcomes(_ response: TransportResponse, _ page: EventsPage, _ name: StreamName) {
        guard let stream = opened[name], stream.handles.isAskingOutcomes, !isClosed else { return }
        if case .body(let bytes) = response { counters.bytesReceived += Int64(bytes.count) }
        do throws(ReelError) {
            guard let events = try page.received(response, name) else {
                return stream.handles.extend(outcomesUntil: outcomeDeadline(name))
            }
            guard events.epoch == stream.covered.question?.epoch else {
                throw ReelError(.epochChanged, "found outcomes of another log")
            }
            let outcomes = try stream.covered.answered(events.frame.events, to: events.to)
            stream.handles.cancelOutcomes()
            resolve(outcomes, stream)
            askNextOutcomes()
        } catch {
            outcomesFailed(error, stream)
        }
    }

    /// Asks again after a pause. Without a connection the next one is asked, and nothing has failed.
    private func outcomesFailed(_ error: ReelError, _ stream: StreamState) {
        stream.handles.cancelOutcomes()
        guard link?.welcome != nil else { return }
        resolve(stream.covered.failed(error), stream)
        if stream.covered.question != nil {
            let name = stream.name
            let pause = after(stream.covered.retryMs(after: error)) { client in
                guard let stream = client.opened[name] else { return }
                stream.handles.cancelOutcomes()
                client.askOutcomes(stream)
            }
            stream.handles.keep(outcomes: nil, until: pause)
        }
        askNextOutcomes()
    }

    /// Asks for further outcomes, of any stream.
    func askNextOutcomes() {
        for stream in opened.values where stream.covered.question != nil { askOutcomes(stream) }
    }

    private func resolve(_ found: [CoveredEvents.Found], _ stream: StreamState) {
        if found.isEmpty { return }
        // The events are sent again in the order of their ops.
        for (number, fact) in found.sorted(by: { $0.number < $1.number }) { stream.outbox.resolve(number, fact) }
        markDirty(stream)
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

extension StreamState {
    /// Ends all questions for covered events.
    func forgetQuestions() {
        handles.cancelOutcomes()
        covered = CoveredEvents()
    }
}
