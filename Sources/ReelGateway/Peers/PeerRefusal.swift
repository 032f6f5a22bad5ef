import ReelCore

/// The members of a snapshot node's refusal on which a gateway acts. The body is a JSON object (RFC 9457). Any other
/// body, for example that of another server, has none of them.
struct PeerRefusal {
    /// The error code; nil: it names no known code.
    private(set) var code: ErrorCode?
    private(set) var detail: String?
    /// The first seq that the node has; nil: it says nothing.
    private(set) var first: Seq?
    /// The last seq that the node has folded; −1: it says nothing.
    private(set) var seq = Seq.none

    init(_ body: [UInt8]) {
        body.withUnsafeBytes { bytes in
            guard let object = try? JSONObject(bytes, levels: 4, shape: .internal) else { return }
            code = (try? object.string("code")).flatMap { ErrorCode(rawValue: $0) }
            detail = try? object.string("detail")
            first = try? object.integer("first")
            seq = (try? object.integer("seq", from: .none)) ?? .none
        }
    }
}
