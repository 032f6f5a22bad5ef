import ReelClient
import ReelCore

extension Demo {
    /// Prints the final positions and digests of devices and nodes.
    func finalTable() async throws {
        screen.chapter("At the end")
        let heads = try await heads()
        var rows = [["who", "stream", "seq", "coverage", "digest"]]
        for name in [light, todo, note, clip, total] {
            let head = heads[name] ?? .none
            var digests: Set<String> = []
            for device in devices {
                let stream = try await device.client.open(name)
                try await stream.waitUntil(seq: head)
                let digest = await stream.digest().map(Hex64.text) ?? "none"
                digests.insert(digest)
                guard name == total || name == clip else { continue }
                rows.append([device.name, name, "\(stream.status.seq)", "\(await stream.coverage())", digest])
            }
            for node in [cluster.snapshot] + cluster.nodes.filter({ $0 !== cluster.snapshot && !$0.process.hasEnded() })
            {
                let state = try await state(of: name, at: node, seq: head)
                digests.insert(state.digest)
                guard name == total || name == clip else { continue }
                rows.append([node.name, name, "\(state.seq)", "", state.digest])
            }
            screen.check(digests.count == 1, "\(name): one digest on \(devices.count) devices and all nodes")
        }
        screen.table(rows)
    }

    private func heads() async throws -> [String: Seq] {
        let living = cluster.nodes.first { $0 !== cluster.snapshot && !$0.process.hasEnded() } ?? cluster.snapshot
        var heads: [String: Seq] = [:]
        for name in [light, todo, note, clip, total] {
            let body = try await cluster.get(living, "/v1/streams/\(name)/head")
            heads[name] = try body.withUnsafeBytes { body in
                try JSONObject(body, levels: ClientFrame.levels, shape: .badFrame).integer("head", from: -1)
            }
        }
        return heads
    }

    /// Returns a node's state of a stream, once the node has folded up to `seq`.
    private func state(of stream: String, at node: LocalNode, seq: Seq) async throws -> (seq: Seq, digest: String) {
        var found: (seq: Seq, digest: String) = (.none, "")
        try await DemoWait.until("\(node.name) has folded \(stream) to \(seq)") {
            let lines = try await cluster.get(node, "/v1/streams/\(stream)/snapshot").split(
                separator: UInt8(ascii: "\n")
            )
            guard let first = lines.first, let last = lines.last else { return false }
            let reached = try Array(first).withUnsafeBytes {
                try JSONObject($0, levels: ClientFrame.levels, shape: .badFrame).integer("seq", from: -1) ?? .none
            }
            let digest = try Array(last).withUnsafeBytes {
                try JSONObject($0, levels: ClientFrame.levels, shape: .badFrame).string("digest") ?? ""
            }
            found = (reached, digest)
            return reached >= seq
        }
        return found
    }
}
