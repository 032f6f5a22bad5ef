import ReelCore
import ReelNet
import ReelNode

/// A client for HTTP requests to nodes. It tries the nodes in order until one answers, and starts with the one that
/// answered last.
final class NodeCaller {
    /// The nodes, the one that answered last first.
    private(set) var addresses: [NodeAddress]
    private let loop: EventLoop
    private let client: LoopBound<HTTPClient>

    /// The errors after which the request has certainly not reached the node.
    private static let notSent: [NetError.Code] = [
        .badAddress, .nameNotFound, .refused, .unreachable, .tooManyFiles, .certificate,
    ]
    /// The largest answer in bytes, except for a state: a page of 10,000 events has about 4 MiB.
    static let answerBytesMax = 64 << 20
    /// The largest snapshot in bytes.
    static let stateBytesMax = 1 << 30

    init(_ addresses: [NodeAddress]) async throws {
        self.addresses = addresses
        let loop = try EventLoop()
        self.loop = loop
        client = try await loop.run { LoopBound(HTTPClient(on: loop), on: loop) }
    }

    deinit {
        loop.stop()
    }

    /// Sends a GET request and returns the body of the answer.
    ///
    /// - Parameters:
    ///   - target: the path and query.
    ///   - bytesMax: the largest body in bytes.
    /// - Throws: a `Refusal` if a node refuses the request, or `NoAnswer` if no node answers.
    func get(_ target: String, bytesMax: Int = answerBytesMax) async throws -> [UInt8] {
        try await answer(target, bytesMax: bytesMax).body
    }

    /// Sends a GET request and returns the answer with its headers. Parameters and errors are those of `get`.
    func answer(_ target: String, bytesMax: Int = answerBytesMax) async throws -> HTTPResponse {
        try await call("GET", target, body: [], bytesMax: bytesMax)
    }

    /// Sends a POST request with JSON and returns the body of the answer. Errors are those of `get`.
    ///
    /// - Parameters:
    ///   - target: the path and query.
    ///   - body: the JSON.
    ///   - key: the `Idempotency-Key` of the request; nil for none.
    func post(_ target: String, _ body: [UInt8], key: String? = nil) async throws -> [UInt8] {
        try await call("POST", target, body: body, key: key).body
    }

    private func call(
        _ method: String,
        _ target: String,
        body: [UInt8],
        key: String? = nil,
        bytesMax: Int = answerBytesMax
    ) async throws -> HTTPResponse {
        var (reasons, hasAnswer, mayBeDone) = ([String](), false, false)
        for address in addresses {
            var request = HTTPClientRequest(
                method,
                host: address.host,
                port: address.port,
                target: target,
                body: body
            )
            request.tls = address.tls
            if let token = address.token { request.headers.add("authorization", "Bearer \(token)") }
            if method == "POST" { request.headers.add("content-type", "application/json") }
            if let key { request.headers.add("idempotency-key", key) }
            do {
                let response = try await client.fetch(request, maxBody: bytesMax)
                if response.status == 503 {
                    let refusal = Refusal(response)
                    // The events are already in the log, so no other node must get the request.
                    guard refusal.acks.isEmpty else { throw refusal }
                    hasAnswer = true
                    reasons.append("\(address): \(refusal.message)")
                    continue
                }
                if address != addresses.first {
                    addresses.removeAll { $0 == address }
                    addresses.insert(address, at: 0)
                }
                guard response.status == 200 else { throw Refusal(response) }
                return response
            } catch let error as NetError {
                let hint = error.code == .certificate ? "; name the authorities to trust with --ca" : ""
                mayBeDone = mayBeDone || !Self.notSent.contains(error.code)
                reasons.append("\(address): \(error.message)\(hint)")
            }
        }
        let heading = hasAnswer ? "no node can serve the request now" : "no node answered"
        throw NoAnswer(message: "\(heading). " + reasons.joined(separator: "; "), mayBeDone: mayBeDone)
    }
}

/// The error if no node has answered, or each has answered with status 503.
struct NoAnswer: Error {
    var message: String
    /// True if a node may have executed the request and its answer was lost.
    var mayBeDone: Bool

    var complaint: CommandError { CommandError(.unreachable, message) }
}

/// The answer of a node that refuses a request: `application/problem+json`.
struct Refusal: Error {
    var status: Int
    var code: ErrorCode?
    var detail = ""
    /// The index of the bad event in the request, from 0; nil if the answer names none.
    var index: Int?
    /// The acks of events that are in the log nevertheless.
    var acks: [Acks.Ack] = []
    /// True if no event was ever published to the stream.
    var isUnpublished = false

    init(_ response: HTTPResponse) {
        status = response.status
        isUnpublished = UnpublishedStream.isSaid(in: response.headers)
        response.body.withUnsafeBytes { body in
            var reader = JSONReader(body, levels: ClientFrame.levels, shape: .badFrame)
            try? reader.object { (reader, key) throws(ReelError) in
                switch key.raw {
                case "code": code = ErrorCode(rawValue: try reader.string())
                case "detail": detail = try reader.string()
                case "index": index = Int(try reader.integer())
                case "acks":
                    try reader.array { (reader) throws(ReelError) in acks.append(try Acks.Ack(try reader.raw())) }
                default: try reader.skip()
                }
            }
        }
    }

    var message: String { "\(detail) (\(code?.rawValue ?? "status \(status)"))" }
    var complaint: CommandError {
        guard let code else { return CommandError(.failed, message) }
        return CommandError(ReelError(code, detail))
    }
}

extension String {
    /// The text for a segment of a path or a value of a query. All bytes except ASCII letters, digits and `-._~` are
    /// percent-encoded (RFC 3986).
    var percentEncoded: String {
        var encoded: [UInt8] = []
        for byte in utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                encoded.append(byte)
            default:
                let digits = Array("0123456789ABCDEF".utf8)
                encoded += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: encoded, as: UTF8.self)
    }
}

/// Parses the name of a stream.
///
/// - Throws: a `CommandError` with exit code 2 that explains the rule for names.
func streamName(_ text: String) throws(CommandError) -> StreamName {
    guard let stream = StreamName(text) else {
        throw CommandError(.usage, "`\(text)` is not a name of a stream; expected are \(StreamName.rule)")
    }
    return stream
}
