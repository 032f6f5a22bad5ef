internal import ReelCore

// The frames that the client receives.
extension SyncClient {
    /// The `ref` of this client's subscribes and fetches. A publish has a number instead.
    enum Ref {
        static let subscribe = Array(#""s""#.utf8)
        static let fetch = Array(#""f""#.utf8)
    }

    func received(_ bytes: [UInt8]) {
        counters.framesReceived += 1
        counters.bytesReceived += Int64(bytes.count)
        guard let number = link?.number else { return }
        do throws(ReelError) {
            let frame = try bytes.lend { (bytes) throws(ReelError) in try ServerFrame(bytes) }
            try received(frame)
        } catch {
            lost(number, "the node sent an invalid frame: \(error.message)")
        }
    }

    private func received(_ frame: ServerFrame) throws(ReelError) {
        switch frame.body {
        case .welcome(let welcome): welcomed(welcome)
        case .subscribed(let subscribed): try received(subscribed)
        case .events(let events): try received(events, isPushed: frame.ref == nil)
        case .upto(let partition, let seq): received(upTo: seq, partition)
        case .unsubscribed: break
        case .ack(let ack):
            guard let stream = opened[ack.stream] else { return }
            for acked in ack.acks {
                let author = Event.Author(site: acked.site, op: acked.op)
                stream.outbox.acked(author, seq: acked.seq, folded: stream.seq, nowMs: transport.nowMs)
            }
            answered(stream)
            note(.acked(stream.name))
            stream.pollPauseMs = Self.pollMs
            pollSoon(stream)
            markDirty(stream)
        case .nack(let nack):
            guard let stream = opened[nack.stream] else { return }
            let author = Event.Author(site: nack.site, op: nack.op)
            let ref = frame.ref.flatMap { Int64(String(decoding: $0, as: UTF8.self)) }
            stream.outbox.nacked(author, nack.error, ref: ref, nowMs: transport.nowMs)
            answered(stream)
            note(.nacked(stream.name, nack.error))
            markDirty(stream)
        case .lagged(let name, _, let head):
            guard let stream = opened[name], stream.phase == .live else { return }
            stream.view?.unsubscribed(head: head)
            stream.phase = .idle
            advance(stream)
        case .goaway(let afterMs, let nodes):
            guard let number = link?.number, link?.leaving == nil else { return }
            let moment = failover.leaves(afterMs: afterMs, nodes: nodes, nowMs: transport.nowMs)
            link?.leaving = after(max(0, moment - transport.nowMs)) { $0.leave(number) }
        case .nodes(let nodes): failover.learn(nodes)
        case .error(let failure): failed(failure, ref: frame.ref)
        }
    }

    private func received(_ subscribed: ServerFrame.Subscribed) throws(ReelError) {
        guard let stream = opened[subscribed.stream], stream.phase == .subscribing, let welcome = link?.welcome else {
            return
        }
        let partition = stream.name.partition(of: welcome.partitions)
        guard subscribed.partition == partition, subscribed.epoch == welcome.epoch else {
            throw ReelError(
                .badFrame,
                "found partition \(subscribed.partition) of \(subscribed.epoch), expected \(partition) of"
                    + " \(welcome.epoch)"
            )
        }
        if stream.view == nil {
            let fold = Fold(
                stream: stream.name,
                partition: subscribed.partition,
                epoch: subscribed.epoch,
                listsChanges: true
            )
            stream.view = View(fold, partitions: welcome.partitions)
        }
        stream.view?.subscribed(after: subscribed.after, head: subscribed.head)
        // The subscription compared the last record: the log is the same, so the folded state is wrong.
        if stream.isContradicted { (stream.isContradicted, stream.needsSnapshot) = (false, true) }
        if wantsSnapshot(stream) {
            // Only this head shows how far the device is behind.
            send(ClientFrame(.unsubscribe(stream.name)))
            stream.view?.unsubscribed()
            stream.phase = .idle
            return advance(stream)
        }
        stream.phase = .live
        note(.live(stream.name))
        stream.isDoubted = false
        stream.hasBeenLive = true
        stream.isLimitTold = false
        stream.sendsFrom = subscribed.head
        stream.catchUpFailures = 0
        markDirty(stream)
        fillGaps(stream)
    }

    func received(_ events: ServerFrame.Events, isPushed: Bool) throws(ReelError) {
        guard let stream = opened[events.stream], stream.view != nil, stream.phase != .stopped else { return }
        var progress = View.Progress()
        let isTaken =
            stream.view?.received(events, isPushed: isPushed, owns: stream.outbox.owns, &progress) ?? false
        guard isTaken else {
            throw ReelError(.badFrame, "found events \(events.from)…\(events.to) that contradict themselves")
        }
        took(progress, stream)
        if !isPushed { renewDeadline(stream) }
        if stream.fetching != nil || (isPushed && stream.view?.heldCount ?? 0 > 0) { fillGaps(stream) }
    }

    private func received(upTo seq: Seq, _ partition: Int) {
        for stream in opened.values where stream.phase == .live && stream.view?.fold.partition == partition {
            var progress = View.Progress()
            stream.view?.upto(seq, owns: stream.outbox.owns, &progress)
            took(progress, stream)
        }
    }

    /// Passes the results of a step of the view to the queue, the store and the app.
    func took(_ progress: View.Progress, _ stream: StreamState) {
        stream.outbox.position = stream.view.map { .init($0.fold) }
        for own in progress.own {
            // A copy that was sent under a former user name says nothing about the site.
            if own.outcome == .foreign, stamp.differs(from: own.by) { continue }
            stream.outbox.folded(
                own.author,
                seq: own.seq,
                own.outcome,
                content: own.content,
                base: stream.seq,
                nowMs: transport.nowMs
            )
        }
        counters.eventsReceived += Int64(progress.received.count)
        stream.eventsBehindState += progress.received.count
        if store != nil { stream.unwritten += progress.received }
        if !progress.seen.isEmpty, !stream.feeds.isEmpty {
            var batch = stream.batch ?? ChangeBatch(seq: stream.seq)
            batch.seen = Array((batch.seen + progress.seen).suffix(ChangeBatch.seenMax))
            stream.batch = batch
        }
        if let stopped = stream.view?.stoppedAt, stream.phase != .stopped {
            let message = "found a barrier at seq \(stopped) that this version of the client does not know"
            note(.notSubscribed(stream.name, ReelError(.newerLog, message)))
            stop(stream, "seq \(stopped) is a barrier that this version of the client does not know")
            // The node may have invented the barrier.
            stream.isRefused = true
        }
        markDirty(stream)
    }

    func failed(_ failure: ServerFrame.Failure, ref: [UInt8]?) {
        let error = failure.error
        guard let name = failure.stream, let stream = opened[name] else {
            // Without a stream, the node could not read the client's frame, or refuses the client, now or from the
            // start.
            if [.unauthorized, .forbidden].contains(error.code) {
                note(.entryRefused(error))
                tokenRefused()
            }
            // The node had no time for the new token.
            if error.code == .rateLimited, link?.welcome != nil { renewLater() }
            guard let number = link?.number, link?.welcome == nil else { return }
            return lost(number, "\(error.code.rawValue): \(error.message)", retryMs: error.retryMs)
        }
        guard stream.phase != .stopped else { return }
        // The two excluded codes are handled without the app.
        if ref == nil || ref == Ref.subscribe, ![.truncated, .epochChanged].contains(error.code) {
            note(.notSubscribed(name, error))
        }
        switch error.code {
        case .epochChanged:
            // The node's log was replaced under it; only `welcome` names the next one.
            guard let number = link?.number else { return }
            lost(number, "\(error.code.rawValue): \(error.message)")
        case .aheadOfLog, .diverged:
            let message = "\(error.code.rawValue): \(error.message)"
            // The node's own log may be the one that is lost, and another node may serve the device's log.
            if ref == nil || !stream.isDoubted, let number = link?.number {
                stream.isDoubted = true
                return lost(number, message)
            }
            stop(stream, message)
            stream.isRefused = true
        case _ where ref == Ref.fetch:
            stream.dropFetch()
            stream.fetchFailures += 1
            if error.code == .truncated { stream.needsSnapshot = true }
            retry(stream, afterMs: error.retryMs ?? 200)
        case .truncated:
            stream.phase = .idle
            stream.needsSnapshot = true
            retry(stream, afterMs: 50)
        case .limit:
            refusedForLimit(stream)
        case .unauthorized, .forbidden, .badStream:
            stop(stream, "\(error.code.rawValue): \(error.message)")
            stream.isRefused = true
        default:
            // An error that answers no request ends the subscription: nothing more is proven for the stream.
            if stream.phase == .subscribing || stream.phase == .live && ref == nil {
                stream.view?.unsubscribed(head: failure.head)
                stream.phase = .idle
            }
            retry(stream, afterMs: error.retryMs ?? 500)
        }
    }

    func stop(_ stream: StreamState, _ reason: String) {
        stream.connectionLost()
        stream.dropCatchUp()
        stream.arrived = nil
        polls.remove(stream.name)
        stream.phase = .stopped
        notify(.stopped(stream: stream.name.description, reason: reason))
        arrangePlaces()
    }
}
