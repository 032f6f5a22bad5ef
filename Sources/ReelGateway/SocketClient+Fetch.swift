import ReelCore
import ReelNet
import ReelNode

/// Ranges that a client asked for. They are answered from front to back.
struct Fetch {
    let stream: StreamName
    let ref: [UInt8]?
    let hasOutcomes: Bool
    var ranges: [ClosedRange<Seq>]
}

extension SocketClient {
    /// Accepts a fetch. The fetches of one connection are answered one after the other.
    func fetch(_ fetch: ClientFrame.Fetch, ref: [UInt8]?) {
        let settings = gateway.share.settings
        let lowest = fetch.ranges.map(\.lowerBound).min() ?? 0
        let highest = fetch.ranges.map(\.upperBound).max() ?? 0
        let seqs = fetch.ranges.reduce(0) { $0 + Int64($1.count) }
        guard seqs <= settings.fetchSeqs else {
            let error = ReelError(
                .badRange,
                "found ranges of \(seqs) seqs, expected at most \(settings.fetchSeqs) in all"
            )
            return refuse(ServerFrame.Failure(error, stream: fetch.stream), ref: ref)
        }
        guard fetches.count + pendingFetches < settings.fetches else {
            let error = ReelError(.limit, "found more than \(settings.fetches) fetches that wait for their answer")
            return decline(error, fetch.stream, ref: ref)
        }
        pendingFetches += 1
        gateway.admit(fetch.stream, epoch: fetch.epoch, lowest: lowest, highest: highest) { [self] failure in
            pendingFetches -= 1
            guard !isClosed else { return }
            if let failure { return refuse(failure, ref: ref) }
            fetches.append(
                Fetch(stream: fetch.stream, ref: ref, hasOutcomes: fetch.hasOutcomes, ranges: fetch.ranges)
            )
            if !isFetching { sendNextPiece() }
        }
    }

    /// Sends the next piece of the first fetch, at the client's pace. `resumeFetching` calls it again after each piece.
    private func sendNextPiece() {
        guard !isFetching, !isClosed, let fetch = fetches.first, let range = fetch.ranges.first else { return }
        isFetching = true
        guard hasRoom(orLater: { [self] in resumeFetching() }) else { return }
        let limit = gateway.subscriptions.bodyLimit(fetch.stream) - (fetch.ref?.count ?? 0)
        gateway.read(
            fetch.stream,
            partition: fetch.stream.partition(of: gateway.share.partitions),
            from: range.lowerBound,
            to: range.upperBound,
            bytes: fetch.hasOutcomes ? GatewayLoop.bytesWithOutcomes(limit) : limit,
            events: fetch.hasOutcomes ? GatewayLoop.outcomesAtOnce : .max,
            for: access
        ) { [self] result in
            guard fetch.hasOutcomes, case .success(let chunk) = result, chunk.count > 0, let access else {
                return answer(fetch, range, result.mapError { gateway.reason($0, fetch.stream) })
            }
            gateway.addOutcomes(to: chunk, of: fetch.stream, for: access) { [self] result in
                answer(fetch, range, result.mapError { ReelError($0.code, $0.detail) })
            }
        }
    }

    private func answer(_ fetch: Fetch, _ range: ClosedRange<Seq>, _ result: Result<EventRange, ReelError>) {
        guard !isClosed else { return }
        if let error = access?.refusalToRead(fetch.stream) {
            // The client has renewed its token since the fetch was accepted, and the new token grants less.
            _ = fetches.popFirst()
            tell(ServerFrame.Failure(error, stream: fetch.stream), ref: fetch.ref)
        } else {
            switch result {
            case .success(let chunk): send(chunk, of: range, to: fetch)
            case .failure(let error):
                _ = fetches.popFirst()
                refuse(gateway.failure(error, fetch.stream), ref: fetch.ref)
            }
        }
        // In turn, so that a long answer from the ring does not delay other clients.
        gateway.turns.add { [self] in
            resumeFetching()
            return !isClosed
        }
    }

    private func resumeFetching() {
        isFetching = false
        sendNextPiece()
    }

    private func send(_ chunk: EventRange, of range: ClosedRange<Seq>, to fetch: Fetch) {
        send(chunk.frame(stream: fetch.stream, ref: fetch.ref))
        var rest = fetch
        if chunk.to < range.upperBound {
            rest.ranges[0] = (chunk.to + 1)...range.upperBound
        } else {
            rest.ranges.removeFirst()
        }
        _ = fetches.popFirst()
        if !rest.ranges.isEmpty { fetches.prepend(rest) }
    }
}
