import ReelCore
import ReelLog
import ReelNode

/// Takes the events that clients publish through one loop: checks them, hands them to the log, and answers. On its loop
/// only.
final class PublishHandler {
    private unowned let gateway: GatewayLoop
    private(set) var ledger: PublishLedger
    private var intake: EventIntake
    /// For each partition the records that were accepted in this round. They go to the log at the end of the round.
    private var accepted: [[PendingRecord]]
    private var isAppending = false
    /// The HTTP publishes that wait for their outcome, by their number.
    private(set) var requests: [Int: HTTPPublish] = [:]

    init(of gateway: GatewayLoop) {
        self.gateway = gateway
        let (partitions, settings) = (gateway.context.partitions, gateway.context.settings)
        ledger = PublishLedger(partitions: partitions, settings)
        intake = EventIntake(limit: settings.eventBytes)
        accepted = [[PendingRecord]](repeating: [], count: partitions)
    }

    private var context: GatewayContext { gateway.context }

    /// Adds an HTTP publish that waits for its outcome.
    func add(_ request: HTTPPublish) { requests[request.number] = request }

    /// Removes an HTTP publish that is answered. Its events still go to the log.
    func remove(_ request: HTTPPublish) {
        requests[request.number] = nil
        forget(request.number)
    }

    /// Forgets a connection that is gone. Its events still go to the log.
    func forget(_ number: Int) { ledger.forget(number) }

    /// Does the work that is due by the clock. Called about once a second.
    func tick(nowMs: Int64) {
        answer(ledger.giveUpUnseen(nowMs: nowMs))
        ledger.nacked.forgetExpired(nowMs: nowMs)
        for request in requests.values { request.tick(nowMs: nowMs) }
    }

    // MARK: Taking events

    /// Checks, stamps and accepts a publish, as a whole or not at all. Sends all answers that are known at once. On the
    /// loop.
    ///
    /// - Parameters:
    ///   - publish: The publish.
    ///   - checked: The events as another thread has checked and stamped them; nil: this method does it.
    ///   - access: The client's rights.
    ///   - number: The number of the connection or request.
    ///   - address: The client's address as a number.
    ///   - ref: The `ref` of the publish, as JSON text.
    ///   - ownSite: The one-request site that this node has made for the events; nil: there is none.
    ///   - refusesUseless: True if events are refused that the fold certainly does not consume. A device learns that
    ///     from its own fold, and then takes another site.
    ///   - unnamed: Called with the error of each event that names no site and op.
    func publish(
        _ publish: ClientFrame.Publish,
        checked: [Result<PublishLedger.Offer, ReelError>]? = nil,
        with access: Access,
        from number: Int,
        _ address: @autoclosure () -> UInt64,
        ref: [UInt8]?,
        ownSite: Site? = nil,
        refusesUseless: Bool = false,
        unnamed: (ReelError) -> Void
    ) {
        let partition = publish.stream.partition(of: context.partitions)
        let stamp = EventIntake.Stamp(
            by: access.subject,
            atMs: gateway.loop.wallMs,
            base: gateway.rings[partition].head
        )
        let refusal =
            access.refusalToPublish(publish.stream) ?? gateway.health.refusal(of: partition) ?? epochRefusal(
                publish.epoch
            )
            ?? memoryRefusal
        var offers: [PublishLedger.Offer] = []
        var isRefused = false
        offers.reserveCapacity(publish.events.count)
        let uselessness = refusesUseless ? gateway.rings[partition].refusal(in: publish.stream) : { _, _, _ in nil }
        for (index, sent) in publish.events.enumerated() {
            sent.withUnsafeBytes { bytes in
                do throws(ReelError) {
                    if let refusal { throw refusal }
                    let offer =
                        if let checked { try checked[index].get() } else {
                            try intake.offer(bytes, stamp, hasEpoch: publish.epoch != nil)
                        }
                    guard !offer.site.isOneRequest || offer.site == ownSite else { throw Self.oneRequestSite }
                    if let refusal = self.refusal(ofBytes: offer.value.count, in: publish.stream) { throw refusal }
                    if let refusal = uselessness(offer.value, offer.site, offer.op) { throw refusal }
                    offers.append(offer)
                } catch {
                    var error = error
                    error.index = index
                    if let (site, op) = EventIntake.author(of: bytes) {
                        offers.append(
                            PublishLedger.Offer(site: site, op: op, value: [], refusal: error)
                        )
                    } else {
                        isRefused = true
                        unnamed(error)
                    }
                }
            }
        }
        let key = PublishLimits.Key(payer: Payer(access, address()), stream: publish.stream)
        let charge = isRefused ? nil : charge(&offers, to: key)
        let conflict = gateway.rings[partition].conflict(in: publish.stream)
        let (taken, settled) = ledger.submit(
            offers,
            to: publish.stream,
            in: partition,
            from: number,
            ref: ref,
            isRefused: isRefused,
            nowMs: gateway.nowMs
        ) { offer in
            conflict(offer.value, offer.site, offer.op)
        }
        if taken.isEmpty, let charge { context.limits.giveBack(charge, of: key) }
        append(taken, to: partition)
        answer(settled)
    }

    /// Returns the stamps for a client's events at this time, for a thread that does not know their stream yet.
    func stamps(for access: Access) -> Stamps {
        Stamps(subject: access.subject, atMs: gateway.loop.wallMs, heads: gateway.rings.map(\.head))
    }

    /// The stamps for the events of one client at one time, by stream.
    struct Stamps: Sendable {
        fileprivate let subject: String?
        fileprivate let atMs: Int64
        /// The last seq of each partition.
        fileprivate let heads: [Seq]

        func stamp(for stream: StreamName) -> EventIntake.Stamp {
            EventIntake.Stamp(by: subject, atMs: atMs, base: heads[stream.partition(of: heads.count)])
        }
    }

    private static let oneRequestSite = ReelError(
        .badEvent,
        "found a site of UUID version 8, which only gateways make; expected another version, such as 4"
    )

    private func epochRefusal(_ epoch: Epoch?) -> ReelError? {
        guard let epoch, epoch != context.epoch else { return nil }
        return ReelError(.epochChanged, "found the epoch \(epoch), this log's is \(context.epoch)")
    }

    private var memoryRefusal: ReelError? {
        guard context.gate.lacksMemory else { return nil }
        return ReelError(.overloaded, "the node has as much memory as it may have", retryMs: 1_000)
    }

    /// Charges the events to a payer, or refuses them if it has published too many. Returns the charge; nil: nothing
    /// was charged.
    private func charge(_ offers: inout [PublishLedger.Offer], to key: PublishLimits.Key) -> PublishLimits.Charge? {
        guard context.settings.limitsPublishes(of: key.payer) else { return nil }
        guard offers.allSatisfy({ $0.refusal == nil }) else { return nil }
        let charge = PublishLimits.Charge(offers)
        guard let refused = context.limits.take(charge, of: key, nowMs: gateway.nowMs) else { return charge }
        context.meters.limits.met(refused.limit, offers.count)
        for index in offers.indices { offers[index].refusal = refused.error }
        return nil
    }

    /// Returns the reason why the log does not accept an event of `count` bytes; nil: it does.
    private func refusal(ofBytes count: Int, in stream: StreamName) -> ReelError? {
        let most = context.log.recordBytesMax - stream.description.utf8.count
        guard count > most else { return nil }
        return ReelError(.tooLarge, "found an event of \(count) bytes, the log takes at most \(most)")
    }

    // MARK: The log

    /// Appends accepted records to the log at the end of the loop's current round.
    private func append(_ taken: [PendingRecord], to partition: Int) {
        accepted[partition] += taken
        guard !isAppending, !taken.isEmpty else { return }
        isAppending = true
        gateway.loop.beforeFlush { [gateway] in gateway.publishing.flush() }
    }

    private func flush() {
        isAppending = false
        for partition in accepted.indices where !accepted[partition].isEmpty { flush(partition) }
    }

    private func flush(_ partition: Int) {
        let taken = accepted[partition]
        accepted[partition] = []
        let ring = gateway.rings[partition]
        let startedMs = gateway.nowMs
        for record in taken { record.headWhenHandedOver = ring.head }
        var (stream, key) = (taken[0].lane.stream, taken[0].lane.stream.key)
        let records = taken.map { record in
            if record.lane.stream != stream { (stream, key) = (record.lane.stream, record.lane.stream.key) }
            return LogAppend(key: key, value: record.value, witness: ring.witness)
        }
        let done: @Sendable (Result<[Seq], LogError>) -> Void = gateway.loop.bound { [gateway] result in
            gateway.context.meters.appends.record(.milliseconds(gateway.nowMs - startedMs))
            gateway.publishing.reported(taken, partition, result)
        }
        context.log.append(records, to: partition, done: done)
    }

    /// Called when the log has reported records of one append.
    func reported(_ taken: [PendingRecord], _ partition: Int, _ result: Result<[Seq], LogError>) {
        switch result {
        case .success(let seqs):
            gateway.health.appended()
            do throws(ReelError) {
                answer(try ledger.reported(taken, at: seqs, head: gateway.rings[partition].head, nowMs: gateway.nowMs))
            } catch {
                gateway.diverged(error)
            }
        case .failure(let error):
            gateway.warn("log cannot be written", error)
            if ![.tooLarge, .overloaded].contains(error.code) {
                gateway.health.appending(fails: error, nowMs: gateway.nowMs)
            }
            for record in taken { answer(ledger.failed([record], reason(error, record), nowMs: gateway.nowMs)) }
        }
    }

    /// Returns the error for the author of one event after an append of several records has failed.
    private func reason(_ error: LogError, _ record: PendingRecord) -> ReelError {
        switch error.code {
        // The gateway lacks this right, not the client.
        case .logUnavailable, .forbidden: ReelError(.logUnavailable, error.publicMessage, retryMs: 1_000)
        case .overloaded: ReelError(.overloaded, error.message, retryMs: 200)
        // The log's size limit has shrunk since the events were accepted. Events within the new limit need only be sent
        // again.
        case .tooLarge:
            refusal(ofBytes: record.value.count, in: record.lane.stream)
                ?? ReelError(.logUnavailable, error.publicMessage, retryMs: 0)
        default: ReelError(error.code, error.publicMessage)
        }
    }

    // MARK: The tail

    /// Answers the events that a batch of the tail contains. Throws if the log has reported an event at a seq at which
    /// the batch has another one.
    func read(_ batch: TailBatch) throws(ReelError) {
        let nowMs = gateway.nowMs
        var settled = ledger.isIdle ? [] : readBack(batch)
        if let end = batch.end {
            settled += ledger.failed(ledger.unread(batch.partition), .ended(end.next), nowMs: nowMs)
        }
        defer { answer(settled) }
        do throws(ReelError) {
            try ledger.read(batch.partition, to: batch.last)
        } catch {
            for index in settled.indices { settled[index].answer = .nacked(error) }
            throw error
        }
    }

    private func readBack(_ batch: TailBatch) -> [PublishLedger.Resolution] {
        var done: [PendingRecord] = []
        // The next event most often has the same stream and site.
        var last: (stream: Int, lane: PublisherKey)?
        for index in batch.kinds.indices {
            guard case .event(let stream, let site, let op) = batch.kinds[index] else { continue }
            if last?.stream != stream || last?.lane.site != site {
                last = (stream, PublisherKey(stream: batch.streams[stream], site: site))
            }
            guard let (_, lane) = last else { continue }
            let item = batch[index]
            let record = batch.withValue(item) { ledger.readBack(lane, op, seq: item.entry.seq, value: $0) }
            if let record { done.append(record) }
        }
        return ledger.finish(done)
    }

    /// Fails the events of a partition that will not be read back: the log was trimmed, or reading has stopped.
    func failUnread(_ partition: Int, _ error: ReelError) {
        answer(ledger.failed(ledger.unread(partition), error, nowMs: gateway.nowMs))
    }

    /// Fails all events that wait for an answer, because the log is not what was read before.
    func fail(_ error: ReelError) {
        for partition in gateway.rings.indices {
            answer(ledger.failed(ledger.inFlight(partition), error, nowMs: gateway.nowMs))
        }
    }

    // MARK: Answers

    /// Sends clients the answers to their events. The acks of one publish go into one frame.
    private func answer(_ settled: [PublishLedger.Resolution]) {
        var index = 0
        while index < settled.count {
            let first = settled[index]
            guard case .acked = first.answer else {
                tell(first)
                index += 1
                continue
            }
            var acks: [ServerFrame.Acked] = []
            while index < settled.count, case .acked(let seq) = settled[index].answer,
                settled[index].connection == first.connection, settled[index].stream == first.stream,
                settled[index].ref == first.ref
            {
                acks.append(ServerFrame.Acked(site: settled[index].site, op: settled[index].op, seq: seq))
                index += 1
            }
            context.meters.acks.add(acks.count)
            if let client = gateway.clients[first.connection] {
                let ack = ServerFrame.Ack(stream: first.stream, epoch: context.epoch, acks: acks)
                client.send(.ack(ack), ref: first.ref)
            } else {
                requests[first.connection]?.acked(acks)
            }
        }
    }

    private func tell(_ settled: PublishLedger.Resolution) {
        guard case .nacked(let error) = settled.answer else { return }
        context.meters.nacked(error.code)
        if let client = gateway.clients[settled.connection] {
            let nack = ServerFrame.Nack(stream: settled.stream, site: settled.site, op: settled.op, error: error)
            client.send(.nack(nack), ref: settled.ref)
        } else {
            requests[settled.connection]?.nacked(error)
        }
    }
}

@available(*, unavailable)
extension PublishHandler: Sendable {}
