import ReelCore
import ReelNode

extension World {
    /// Answers a POST of a device: a request for digests.
    func answer(
        _ target: String,
        _ body: [UInt8],
        at gateway: SimulatedGateway,
        then: @escaping (Int, [UInt8]) -> Void
    ) {
        guard target == "/v1/digests", let (epoch, streams) = try? Self.digestsRequest(body) else {
            return then(404, Array(#"{"code":"not_found"}"#.utf8))
        }
        guard epoch == log.epoch else { return then(409, Array(#"{"code":"epoch_changed"}"#.utf8)) }
        guard let node = snapshotNode(for: gateway) else { return then(503, Array(#"{"code":"node_behind"}"#.utf8)) }
        let digests = streams.map { StreamDigest($0.stream, node.digest(of: $0.stream, seq: $0.seq)) }
        trace(gateway.process.name, "answers with the digests of \(digests.count) streams")
        then(200, StreamDigest.body(digests, of: epoch))
    }

    private static func digestsRequest(
        _ body: [UInt8]
    ) throws -> (epoch: Epoch, streams: [(stream: StreamName, seq: Seq)]) {
        try body.withUnsafeBytes { bytes in
            let object = try JSONObject(bytes, levels: 3, shape: .badRequest)
            let streams = try object.elements("streams")?.map { bytes in
                let entry = try JSONObject(bytes, levels: 2, shape: .badRequest)
                return (try entry.stream(), try entry.required("seq", entry.integer("seq", from: .none)))
            }
            return (try object.required("epoch", object.epoch()), try object.required("streams", streams))
        }
    }
}

extension SimulatedSnapshotNode {
    /// Returns the digest of a stream for a client that holds its state as of `seq`.
    func digest(of stream: StreamName, seq: Seq) -> Result<StreamDigest.State, Problem> {
        guard var fold = fold(of: stream), seq <= fold.seq else {
            return .failure(Problem(.nodeBehind, "found seq \(seq), which is not folded"))
        }
        guard seq == .none || seq >= fold.horizon else {
            return .failure(Problem(.truncated, "found seq \(seq) before the horizon \(fold.horizon)"))
        }
        return .success(
            .init(
                partition: fold.partition,
                seq: fold.seq,
                consumed: fold.consumed,
                digest: fold.digest(),
                next: fold.next
            )
        )
    }
}
