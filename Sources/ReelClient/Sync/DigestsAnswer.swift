internal import ReelCore

/// The answer to a request for digests that is being read. Belongs to the client's executor.
final class DigestsAnswer: @unchecked Sendable {
    /// The digest of one stream, as a node has it.
    struct State: Equatable {
        /// The partition of the stream.
        var partition: Int
        /// The seq as of which the digest is correct.
        var seq: Seq
        /// The number of events that the node's fold has consumed.
        var consumed: Int64
        var digest: UInt64
        /// True if the epoch has ended. Then a delta tells more.
        var hasEnded: Bool
    }

    /// An entry of the answer.
    enum Entry: Equatable {
        case state(State)
        /// The node has not folded the client's seq yet.
        case behind
        /// Any other reason, which the answer to a request for the stream's state shows as well.
        case refused
    }

    /// The size of the largest answer in bytes. An entry of a node has less than 1 KiB.
    private static let bytesMax = 2 << 20

    private var status = 0
    private var body: [UInt8] = []

    /// Reads a piece of the answer. Returns the epoch and the entries once it is complete.
    func received(_ response: TransportResponse) throws(ReelError) -> (epoch: Epoch, entries: [StreamName: Entry])? {
        switch response {
        case .head(let status, _): self.status = status
        case .body(let bytes):
            guard body.count + bytes.count <= Self.bytesMax else {
                throw ReelError(.tooLarge, "found digests of more than \(Self.bytesMax) bytes")
            }
            body += bytes
        case .end where status == 200:
            return try body.lend { (bytes) throws(ReelError) in try Self.parse(bytes) }
        case .end: throw ReelError(problem: body, status: status)
        case .failed(let reason): throw ReelError(.logUnavailable, reason, retryMs: 0)
        }
        return nil
    }

    private static func parse(_ bytes: Bytes) throws(ReelError) -> (epoch: Epoch, entries: [StreamName: Entry]) {
        let object = try JSONObject(bytes, levels: ClientFrame.levels, shape: .badFrame)
        let epoch = try object.required("epoch", object.epoch())
        var entries: [StreamName: Entry] = [:]
        for bytes in try object.required("streams", object.elements("streams")) {
            let entry = try JSONObject(bytes, levels: ClientFrame.levels, shape: .badFrame)
            entries[try entry.stream()] = try read(entry)
        }
        return (epoch, entries)
    }

    private static func read(_ entry: JSONObject) throws(ReelError) -> Entry {
        if let error = try entry.object("error") {
            return try error.string("code") == ErrorCode.nodeBehind.rawValue ? .behind : .refused
        }
        guard let text = try entry.string("digest"), let digest = Hex64.parse(text) else {
            throw entry.mismatch("found no digest of 16 hex digits")
        }
        return .state(
            State(
                partition: Int(try entry.required("partition", entry.integer("partition"))),
                seq: try entry.required("seq", entry.integer("seq", from: .none)),
                consumed: try entry.required("consumed", entry.integer("consumed")),
                digest: digest,
                hasEnded: entry.raw("next") != nil
            )
        )
    }
}
