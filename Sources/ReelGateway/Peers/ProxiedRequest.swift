import ReelCore
import ReelNet
import ReelNode

/// A question that a gateway forwards to a snapshot node.
protocol ProxiedRequest {
    /// The partition that the question is about; −1: all.
    func partition(of partitions: Int) -> Int
    /// The maximum size in bytes of an answer that a gateway accepts from another node.
    var answerBytesMax: Int { get }
    /// The bytes that the gateway sends before the answer's body.
    var preamble: [UInt8] { get }
    /// The question as a request to another node.
    func clientRequest(to origin: HTTPOrigin) -> HTTPClientRequest
}

extension StateRequest: ProxiedRequest {
    func partition(of partitions: Int) -> Int { stream.partition(of: partitions) }

    var answerBytesMax: Int {
        switch kind {
        // 1,024 fields and 768 KiB, with names and seqs.
        case .object: 4 << 20
        // At most 10,000 acks of about 200 bytes.
        case .outcomes: 8 << 20
        // At most 10,000 sites, with escaped names of users.
        case .sites: 16 << 20
        // A stream has no limit. The client reads it at its own pace.
        case .snapshot, .delta, .rest: 16 << 30
        }
    }

    func clientRequest(to origin: HTTPOrigin) -> HTTPClientRequest { HTTPClientRequest(self, origin) }
}

extension StreamListRequest: ProxiedRequest {
    func partition(of partitions: Int) -> Int { -1 }

    // At most 1,000 streams with their figures.
    var answerBytesMax: Int { 4 << 20 }

    var preamble: [UInt8] { [] }

    func clientRequest(to origin: HTTPOrigin) -> HTTPClientRequest {
        var request = HTTPClientRequest("GET", host: origin.host, port: origin.port, target: target)
        request.report(readable: readable)
        return request
    }
}

extension DigestsRequest: ProxiedRequest {
    func partition(of partitions: Int) -> Int { -1 }

    // At most 1,000 streams, each with its digest or an error.
    var answerBytesMax: Int { 1 << 20 }

    var preamble: [UInt8] { [] }

    func clientRequest(to origin: HTTPOrigin) -> HTTPClientRequest {
        var request = HTTPClientRequest("POST", host: origin.host, port: origin.port, target: Self.path, body: body)
        request.report(readable: readable)
        return request
    }
}
