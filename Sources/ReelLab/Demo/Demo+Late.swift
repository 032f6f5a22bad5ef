import ReelBase
import ReelClient
import ReelCore

extension Demo {
    /// Lets a device join last: it reads the present state, and not the history.
    func lateDevice() async throws {
        screen.chapter("Finn joins last, from a snapshot")
        let finn = try await device("finn", at: cluster.b)
        let head = try await devices[0].client.open(total).status.seq
        let before = await finn.client.statistics.snapshotBytes
        let start = MonotonicClock.nowMs()
        let stream = try await finn.client.open(total, from: .snapshot)
        try await stream.waitUntil(seq: head)
        let took = MonotonicClock.nowMs() - start
        let snapshot = await finn.client.statistics.snapshotBytes - before
        let history = try await historyBytes(of: total)
        screen.say("\(snapshot) bytes of snapshot instead of \(history) bytes of history, folded after \(took) ms")
        let isSmall = (1..<Int64(history) / 10).contains(snapshot)
        screen.check(isSmall, "the size of the snapshot follows the present state, not the history")
        let gone = try await devices[0].client.open(total).digest()
        screen.check(await stream.digest() == gone, "and its state equals that of the devices that read everything")
    }

    private func historyBytes(of stream: String) async throws -> Int {
        var bytes = 0
        var after: Seq = .none
        while true {
            let page = try await cluster.get(
                cluster.snapshot,
                "/v1/streams/\(stream)/events?after=\(after)&limit=10000"
            )
            bytes += page.count
            let to = try page.withUnsafeBytes { page in
                try JSONObject(page, levels: ClientFrame.levels, shape: .badFrame).integer("to", from: -1) ?? .none
            }
            guard to > after else { return bytes }
            after = to
        }
    }
}
