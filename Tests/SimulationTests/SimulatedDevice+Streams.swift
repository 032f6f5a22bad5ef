import ReelCore

@testable import ReelClient

// An app leaves streams and returns to them.
extension SimulatedDevice {
    /// Takes up what waits in a stream from an earlier opening.
    func hearOfWaiting(_ stream: StreamName, _ client: isolated SyncClient) {
        guard let opening = client.opened[stream]?.opening else { return }
        for publication in client.pending(of: opening) { hear(of: publication) }
    }

    /// Closes or evicts a stream, and opens it again after a while.
    func leaveStream() {
        guard world.isWorking else { return }
        process.after(process.pick(1_000...20_000)) { [self] in leaveStream() }
        guard let client, !isErasing, !isStoreRemoved else { return }
        let stream = streams[Int(process.pick(0...Int64(streams.count - 1)))]
        let evicts = process.chance(50)
        client.assumeIsolated { client in
            guard let opening = client.opened[stream]?.opening else { return }
            world.trace(name, "\(evicts ? "evicts" : "closes") \(stream)")
            do {
                if evicts { try client.evict(stream.description) } else { client.close(opening) }
            } catch {
                world.broken("\(name) could not evict \(stream): \(error)")
            }
        }
        // What it reads then is not older than what it has kept.
        if evicts { shown[stream] = nil }
        process.after(process.chance(30) ? 0 : process.pick(0...3_000)) { [self] in returnTo(stream) }
    }

    private func beginLater() { _ = process.after(0) { [self] in beginWithoutStore() } }

    private func returnTo(_ stream: StreamName) {
        guard let client, !isErasing else { return }
        client.assumeIsolated { client in
            do {
                try client.open(stream.description, from: start)
                hearOfWaiting(stream, client)
            } catch {
                if isStoreRemoved { return beginLater() }
                world.broken("\(name) could not open \(stream) again: \(error)")
            }
        }
    }
}
