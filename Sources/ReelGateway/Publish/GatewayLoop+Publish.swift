import ReelCore
import ReelLog
import ReelNode
import Synchronization

extension GatewayLoop {
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
        let stamp = EventIntake.Stamp(by: access.subject, atMs: loop.wallMs, base: rings[partition].head)
        let refusal =
            access.refusalToPublish(publish.stream) ?? health.refusal(of: partition) ?? epochRefusal(publish.epoch)
            ?? memoryRefusal
        var offers: [PublishLedger.Offer] = []
        var isRefused = false
        offers.reserveCapacity(publish.events.count)
        let uselessness = refusesUseless ? rings[partition].refusal(in: publish.stream) : { _, _, _ in nil }
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
        let conflict = rings[partition].conflict(in: publish.stream)
        let (taken, settled) = ledger.submit(
            offers,
            to: publish.stream,
            in: partition,
            from: number,
            ref: ref,
            isRefused: isRefused,
            nowMs: nowMs
        ) { offer in
            conflict(offer.value, offer.site, offer.op)
        }
        if taken.isEmpty, let charge { context.limits.publishLimits.withLock { $0.giveBack(charge, of: key) } }
        append(taken, to: partition)
        answer(settled)
    }

    /// Returns the stamps for a client's events at this time, for a thread that does not know their stream yet.
    func stamps(for access: Access) -> Stamps {
        Stamps(subject: access.subject, atMs: loop.wallMs, heads: rings.map(\.head))
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
        guard let refused = context.limits.publishLimits.withLock({ $0.take(charge, of: key, nowMs: nowMs) }) else {
            return charge
        }
        context.meters.limits.met(refused.limit, offers.count)
        for index in offers.indices { offers[index].refusal = refused.error }
        return nil
    }

    /// Returns the reason why the log does not accept an event of `count` bytes; nil: it does.
    func refusal(ofBytes count: Int, in stream: StreamName) -> ReelError? {
        let most = context.log.recordBytesMax - stream.description.utf8.count
        guard count > most else { return nil }
        return ReelError(.tooLarge, "found an event of \(count) bytes, the log takes at most \(most)")
    }

    /// Sends clients the answers to their events. The acks of one publish go into one frame.
    func answer(_ settled: [PublishLedger.Resolution]) {
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
            if let client = clients[first.connection] {
                let ack = ServerFrame.Ack(stream: first.stream, epoch: context.epoch, acks: acks)
                client.send(.ack(ack), ref: first.ref)
            } else {
                publishes[first.connection]?.acked(acks)
            }
        }
    }

    private func tell(_ settled: PublishLedger.Resolution) {
        guard case .nacked(let error) = settled.answer else { return }
        context.meters.nacked(error.code)
        if let client = clients[settled.connection] {
            let nack = ServerFrame.Nack(stream: settled.stream, site: settled.site, op: settled.op, error: error)
            client.send(.nack(nack), ref: settled.ref)
        } else {
            publishes[settled.connection]?.nacked(error)
        }
    }
}
