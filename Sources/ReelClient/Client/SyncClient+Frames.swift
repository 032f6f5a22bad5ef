internal import ReelCore

// The frames that the client receives.
extension SyncClient {
    /// The `ref` of this client's subscribes and fetches. A publish has a number instead.
    enum Ref {
        static let subscribe = Array(#""s""#.utf8)
        static let fetch = Array(#""f""#.utf8)

        /// Returns the `ref` of a subscribe. It differs from those before the last `unsubscribe`: an answer that is
        /// still on its way would otherwise count for a later subscription, which the node does not have yet.
        static func subscribe(after unsubscribes: Int) -> [UInt8] {
            unsubscribes == 0 ? subscribe : Array("\"s\(unsubscribes)\"".utf8)
        }

        /// Returns the subject of an error with this `ref`; nil if the error answers an earlier subscribe.
        static func subject(_ ref: [UInt8]?, _ stream: StreamState) -> StreamSync.Subject? {
            switch ref {
            case nil: .subscription
            case stream.subscribeRef: .subscribe
            case fetch: .fetch
            case let ref? where ref.starts(with: subscribe.dropLast()): nil
            default: .other
            }
        }
    }

    func received(_ bytes: [UInt8]) {
        counters.framesReceived += 1
        counters.bytesReceived += Int64(bytes.count)
        guard let number = link?.number else { return }
        heardMs = transport.wallMs
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
        case .subscribed(let subscribed): try received(subscribed, ref: frame.ref)
        case .events(let events): try received(events, isPushed: frame.ref == nil)
        case .upto(let partition, let seq): received(upTo: seq, partition)
        case .unsubscribed: break
        case .ack(let ack):
            guard let stream = opened[ack.stream] else { return }
            for acked in ack.acks {
                let author = EventID(site: acked.site, op: acked.op)
                stream.outbox.acked(author, seq: acked.seq, folded: stream.seq, nowMs: transport.nowMs)
            }
            answered(stream)
            note(.acked(stream.name))
            if stream.sync.isPolled { step(stream, .queueMoved) }
            markDirty(stream)
        case .nack(let nack):
            guard let stream = opened[nack.stream] else { return }
            let author = EventID(site: nack.site, op: nack.op)
            let ref = frame.ref.flatMap { Int64(String(decoding: $0, as: UTF8.self)) }
            stream.outbox.nacked(author, nack.error, ref: ref, nowMs: transport.nowMs)
            answered(stream)
            note(.nacked(stream.name, nack.error))
            markDirty(stream)
        case .lagged(let name, _, let head):
            guard let stream = opened[name], stream.sync.isLive else { return }
            stream.view?.unsubscribed(head: head)
            step(stream, .lagged)
        case .goaway(let afterMs, let nodes):
            guard let number = link?.number, link?.leaving == nil else { return }
            let moment = failover.leaves(afterMs: afterMs, nodes: nodes, nowMs: transport.nowMs)
            link?.leaving = after(max(0, moment - transport.nowMs)) { $0.leave(number) }
        case .nodes(let nodes): failover.learn(nodes)
        case .error(let failure): failed(failure, ref: frame.ref)
        }
    }

    private func received(_ subscribed: ServerFrame.Subscribed, ref: [UInt8]?) throws(ReelError) {
        guard let stream = opened[subscribed.stream], stream.sync.state == .subscribing, let welcome = link?.welcome,
            ref ?? stream.subscribeRef == stream.subscribeRef
        else { return }
        let partition = stream.name.partition(of: welcome.partitions)
        guard subscribed.partition == partition, subscribed.epoch == welcome.epoch else {
            throw ReelError(
                .badFrame,
                "found partition \(subscribed.partition) of \(subscribed.epoch), expected \(partition) of"
                    + " \(welcome.epoch)"
            )
        }
        makeView(stream, welcome)
        stream.view?.subscribed(after: subscribed.after, head: subscribed.head)
        step(stream, .subscribed(head: subscribed.head))
    }

    /// Begins with an empty state, if the stream has none.
    func makeView(_ stream: StreamState, _ welcome: ServerFrame.Welcome) {
        guard stream.view == nil else { return }
        let partition = stream.name.partition(of: welcome.partitions)
        let fold = store?.emptyFold(of: stream.name, partition: partition, epoch: welcome.epoch)
        stream.view = fold.map { View($0, partitions: welcome.partitions) }
        guard let former = stream.former else { return }
        // The empty state replaces the stored one, and the events after it.
        stream.replacedLayers += former.storedObjects?.layers ?? []
        stream.former = nil
        (stream.isStateDue, stream.unwrittenEpoch, stream.replacement) = (true, true, .whole)
    }

    private func received(_ events: ServerFrame.Events, isPushed: Bool) throws(ReelError) {
        guard let stream = opened[events.stream], stream.view != nil, stream.sync.isReading else { return }
        try apply(events, isPushed: isPushed, stream)
        countEvents(events, of: stream)
        // Most frames are pushed, and leave no gap.
        guard !isPushed || stream.sync.isFetching || stream.view?.heldCount ?? 0 > 0 else { return }
        step(stream, .proven(isAnswer: !isPushed))
    }

    /// Adds events to the state of a stream.
    func apply(_ events: ServerFrame.Events, isPushed: Bool, _ stream: StreamState) throws(ReelError) {
        var progress = stream.newProgress
        let isTaken =
            stream.view?.received(events, isPushed: isPushed, owns: stream.outbox.owns, &progress) ?? false
        guard isTaken else {
            throw ReelError(.badFrame, "found events \(events.from)…\(events.to) that contradict themselves")
        }
        took(progress, stream)
    }

    private func received(upTo seq: Seq, _ partition: Int) {
        for stream in opened.values where stream.sync.isLive && stream.view?.isProven(to: seq, of: partition) == false {
            var progress = stream.newProgress
            stream.view?.upto(seq, owns: stream.outbox.owns, &progress)
            took(progress, stream)
        }
    }

    /// Passes the results of a step of the view to the queue, the store and the app.
    func took(_ progress: View.Progress, _ stream: StreamState) {
        // Outcomes that were computed without a damaged object are wrong. The commit drops the state.
        guard stream.fold?.hasFailedToRead != true else { return markDirty(stream) }
        stream.outbox.position = stream.view.map { .init($0.fold) }
        for own in progress.own {
            // A copy that was sent under a former user name says nothing about the site.
            if own.outcome == .foreign, stamp.differs(from: own.by) { continue }
            let wasQueued = stream.outbox.folded(
                own.author,
                seq: own.seq,
                own.outcome,
                content: own.content,
                base: stream.seq,
                nowMs: transport.nowMs
            )
            // A clone of this device has published it, or the store was restored from a backup.
            if !wasQueued, own.outcome == .applied { stream.recorder?.note(own.objects, .remote) }
        }
        stream.recorder?.note(progress.others ?? [], .remote)
        counters.eventsReceived += Int64(progress.received.count)
        stream.eventsBehindState += progress.received.count
        stream.bytesBehindState += progress.received.reduce(0) { $0 + $1.value.count }
        stream.unwritten += progress.received
        if !progress.seen.isEmpty, !stream.feeds.isEmpty {
            var batch = stream.batch ?? ObjectChangeBatch(seq: stream.seq)
            batch.seen = Array((batch.seen + progress.seen).suffix(ObjectChangeBatch.seenMax))
            stream.batch = batch
        }
        if let stopped = stream.view?.stoppedAt, stream.sync.isReading {
            // The node may have invented the barrier.
            let message = "found a barrier at seq \(stopped) that this version of the client does not know"
            step(stream, .unreadable(ReelError(.newerLog, message)))
        }
        markDirty(stream)
    }

    private func failed(_ failure: ServerFrame.Failure, ref: [UInt8]?) {
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
            // A refused frame with several subscriptions names no stream, and all of them would wait for ever.
            let isOfSubscribes = ref?.starts(with: Ref.subscribe.dropLast()) == true
            guard let number = link?.number, link?.welcome == nil || isOfSubscribes else { return }
            return lost(number, "\(error.code.rawValue): \(error.message)", retryMs: error.retryMs)
        }
        guard let subject = Ref.subject(ref, stream) else { return }
        let wasSubscribed = stream.sync.isSubscribed
        step(stream, .refused(error, subject))
        if wasSubscribed, !stream.sync.isSubscribed { stream.view?.unsubscribed(head: failure.head) }
    }
}
