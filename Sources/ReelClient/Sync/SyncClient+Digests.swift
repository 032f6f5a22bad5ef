internal import ReelCore

// A stream that the device holds is often the same as at the node. One request compares the digests of many streams,
// and only the others need a delta.
extension SyncClient {
    /// True if the connected node, or the next one, may have a digest to compare the folded state with.
    func asksDigest(of view: View) -> Bool {
        link?.lacksDigests != true && view.heldCount == 0 && view.stoppedAt == nil
    }

    /// Asks for the digest of the stream together with those of others. Without a connection the next one is asked.
    func askDigest(of stream: StreamState) {
        digests.add(stream.name, nowMs: transport.nowMs)
        planDigests()
    }

    /// Forgets that a stream needs its digest.
    func forgetDigest(of stream: StreamState) {
        digests.remove(stream.name)
        guard digests.isAbandoned else { return }
        _ = digests.end()
        digestRequest?.cancel()
        digestRequest = nil
        planDigests()
    }

    /// Starts the timer of the next request, unless it is running.
    private func planDigests() {
        guard digestRequest == nil, !isClosed, link?.welcome != nil, let dueMs = digests.dueMs else { return }
        digestRequest = after(max(0, dueMs - transport.nowMs)) { client in
            client.digestRequest = nil
            // Further streams may have come meanwhile.
            if let dueMs = client.digests.dueMs, dueMs <= client.transport.nowMs { client.askDigests() }
            client.planDigests()
        }
    }

    private func askDigests() {
        guard let link, let epoch = link.welcome?.epoch else { return }
        let streams = digests.begin(nowMs: transport.nowMs).compactMap { opened[$0] }
        let held = streams.filter { $0.view?.fold.epoch == epoch }
        guard !held.isEmpty else { return end([:], of: epoch) }
        var writer = JSONObjectWriter()
        writer.member("epoch", epoch.description)
        writer.objects("streams", held) { object, stream in
            object.member("stream", stream.name.description)
            object.member("seq", stream.seq)
        }
        let (answer, number) = (DigestsAnswer(), link.number)
        digestRequest = transport.post(to: link.node, "/v1/digests", json: writer.finish(), token: token) {
            [weak self] response in self?.assumeIsolated { $0.received(response, answer, number) }
        }
    }

    private func received(_ response: TransportResponse, _ answer: DigestsAnswer, _ number: Int) {
        guard !isClosed else { return }
        if case .body(let bytes) = response { counters.bytesReceived += Int64(bytes.count) }
        do throws(ReelError) {
            guard let found = try answer.received(response) else {
                // On a slow connection the next request waits for this one.
                for stream in opened.values where digests.awaits(stream.name) { step(stream, .progressed(.load)) }
                return
            }
            end(found.entries, of: found.epoch)
        } catch {
            // The state of each stream is requested instead, also for the rest of this connection.
            if link?.number == number { link?.lacksDigests = true }
            end([:], of: nil)
        }
    }

    /// Ends the request with its answer.
    private func end(_ entries: [StreamName: DigestsAnswer.Entry], of epoch: Epoch?) {
        digestRequest?.cancel()
        digestRequest = nil
        let awaiting = digests.end()
        for stream in opened.values where awaiting.contains(stream.name) {
            compare(stream, with: epoch == stream.view?.fold.epoch ? entries[stream.name] : nil)
        }
        planDigests()
    }

    /// Counts all seqs up to the node's one as covered if the node has the same state. Otherwise the stream continues
    /// without digests: an entry that contradicts itself proves nothing.
    private func compare(_ stream: StreamState, with entry: DigestsAnswer.Entry?) {
        guard case .state(let state) = entry else {
            return step(stream, .digestAnswered(entry == .behind ? .behind : .other))
        }
        guard let view = stream.view, asksDigest(of: view), state.partition == view.fold.partition, !state.hasEnded,
            state.seq >= view.seq, state.consumed == view.fold.consumed, state.digest == stream.view?.digest()
        else { return step(stream, .digestAnswered(.other)) }
        if state.seq > view.seq {
            stream.view?.cover(to: state.seq)
            took(View.Progress(), stream)
        }
        counters.digests += 1
        step(stream, .digestAnswered(.same))
    }
}
