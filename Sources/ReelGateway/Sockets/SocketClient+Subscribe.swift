import ReelCore
import ReelNode

// Subscriptions of the client.
extension SocketClient {
    /// Removes the pending subscribe of a stream, which makes it void.
    func forgetSubscribe(_ stream: StreamName) {
        subscribing[stream] = nil
        // An empty dictionary keeps its capacity.
        if subscribing.isEmpty { subscribing = [:] }
    }

    func subscribe(_ subscribe: ClientFrame.Subscribe, ref: [UInt8]?) {
        let (stream, context) = (subscribe.stream, gateway.context)
        let partition = stream.partition(of: context.partitions)
        if let models = subscribe.models, models.count > EventFilter.modelsMax {
            let error = ReelError(.limit, "found \(models.count) models, expected at most \(EventFilter.modelsMax)")
            return refuse(ServerFrame.Failure(error, stream: stream), ref: ref)
        }
        let isNew = gateway.fanOut.subscriptions.entry(self, stream) == nil
        if isNew, gateway.fanOut.subscriptions.count(self) + subscribing.count >= settings.subscriptions {
            let error = ReelError(.limit, "found more than \(settings.subscriptions) subscriptions of one connection")
            return decline(error, stream, ref: ref)
        }
        // Those that others have replaced, but that still take a turn or wait for the log.
        let reading = gateway.fanOut.subscriptions.all(of: self).count { $0.readState != .idle }
        let replaced = reads.readers - reading + waits
        guard replaced < settings.subscriptions else {
            let error = ReelError(.limit, "found more than \(settings.subscriptions) subscribes that wait")
            return decline(error, stream, ref: ref)
        }
        let (after, lowest, highest): (Seq?, Seq, Seq) =
            switch subscribe.position {
            case .after(let seq): (seq, seq + 1, seq)
            // A node that has just started does not know the log's present end yet.
            case .now: (nil, .max, context.health.goal(of: partition))
            }
        if highest > gateway.rings[partition].head, waits >= settings.waits {
            context.meters.limits.met(.waits)
            let error = ReelError(
                .overloaded,
                "found more than \(settings.waits) positions of one connection that this node has not read to",
                retryMs: 1_000
            )
            return decline(error, stream, ref: ref)
        }
        waits += 1
        let ticket = gateway.nextNumber()
        subscribing[stream] = ticket
        let wanted = ReadRequest(stream: stream, epoch: subscribe.epoch, lowest: lowest, highest: highest)
        gateway.admit(wanted) { [self] failure in
            waits -= 1
            guard subscribing[stream] == ticket, !isClosed else { return }
            forgetSubscribe(stream)
            do throws(RefusedSubscribe) {
                gateway.begin(try begin(subscribe, after: after, in: partition, failure, ref: ref))
            } catch {
                switch error.failure.error.code {
                case .limit, .forbidden: tell(error.failure, ref: ref)
                default: refuse(error.failure, ref: ref)
                }
            }
        }
    }

    private struct RefusedSubscribe: Error {
        var failure: ServerFrame.Failure

        init(failure: ServerFrame.Failure) {
            self.failure = failure
        }

        init(_ code: ErrorCode, _ message: String, _ stream: StreamName) {
            failure = ServerFrame.Failure(ReelError(code, message), stream: stream)
        }
    }

    /// The payer of this connection.
    private var payer: Payer { Payer(access ?? Access(nil), origin) }

    /// Counts a new subscription, unless it replaces one. Throws if the client has reached its limit of subscriptions
    /// or of filter bytes.
    private func makeRoom(for filter: EventFilter?, _ stream: StreamName) throws(RefusedSubscribe) {
        let context = gateway.context
        if let filter {
            let replaced = gateway.fanOut.subscriptions.entry(self, stream)?.filter?.byteCount ?? 0
            let bytes = filterBytes - replaced + filter.byteCount
            guard bytes <= settings.filterBytes else {
                context.meters.limits.met(.filters)
                throw RefusedSubscribe(
                    .limit,
                    "found \(bytes) bytes of models in the subscriptions of one connection, expected at most"
                        + " \(settings.filterBytes)",
                    stream
                )
            }
        }
        guard gateway.fanOut.subscriptions.entry(self, stream) == nil else { return }
        let shares = context.limits.payerSubscriptions
        guard shares.take(for: payer) else {
            context.meters.limits.met(.subscriptions)
            throw RefusedSubscribe(
                .limit,
                "found more than \(shares.limit.most) subscriptions of one \(payer.words.who),"
                    + " expected fewer of this \(payer.words.whose)",
                stream
            )
        }
    }

    /// Releases what `makeRoom` has counted.
    func subscriptionEnded() {
        gateway.context.limits.payerSubscriptions.giveBack(1, of: payer)
    }

    /// Starts a subscription at a position of this log, and confirms it to the client.
    private func begin(
        _ subscribe: ClientFrame.Subscribe,
        after: Seq?,
        in partition: Int,
        _ failure: ServerFrame.Failure?,
        ref: [UInt8]?
    ) throws(RefusedSubscribe) -> Subscription<SocketClient> {
        let (stream, context, ring) = (subscribe.stream, gateway.context, gateway.rings[partition])
        if let failure { throw RefusedSubscribe(failure: failure) }
        if let error = access?.refusalToRead(stream) {
            throw RefusedSubscribe(failure: ServerFrame.Failure(error, stream: stream))
        }
        if let last = subscribe.last, ring.agrees(stream: stream, seq: last.seq, hash: last.hash) == false {
            let error = ReelError(.diverged, "the event at seq \(last.seq) is another one here")
            throw RefusedSubscribe(failure: ServerFrame.Failure(error, stream: stream))
        }
        let start = after ?? ring.head
        let filter = subscribe.models.map { EventFilter(models: $0, site: subscribe.site) }
        try makeRoom(for: filter, stream)
        let entry = gateway.fanOut.add(
            self,
            stream,
            partition: partition,
            after: start,
            filter: filter,
            hasOutcomes: subscribe.hasOutcomes
        )
        let subscribed = ServerFrame.Subscribed(
            stream: stream,
            epoch: context.epoch,
            partition: partition,
            first: context.health.first(of: partition),
            head: ring.head,
            after: start
        )
        send(.subscribed(subscribed), ref: ref)
        return entry
    }
}
