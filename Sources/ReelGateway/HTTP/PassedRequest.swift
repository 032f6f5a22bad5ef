import ReelCore
import ReelNet
import ReelNode

/// A question that a gateway passes on to a snapshot node.
protocol PassedRequest {
    /// The partition that the question is about; −1: all.
    func partition(of partitions: Int) -> Int
    /// What stands before the answer's body.
    var preamble: [UInt8] { get }
    /// The question as a request to another node.
    func clientRequest(to origin: HTTPOrigin) -> HTTPClientRequest
}

extension StateRequest: PassedRequest {
    func partition(of partitions: Int) -> Int { stream.partition(of: partitions) }

    func clientRequest(to origin: HTTPOrigin) -> HTTPClientRequest { HTTPClientRequest(self, origin) }
}

extension StreamListRequest: PassedRequest {
    func partition(of partitions: Int) -> Int { -1 }

    var preamble: [UInt8] { [] }

    func clientRequest(to origin: HTTPOrigin) -> HTTPClientRequest {
        var request = HTTPClientRequest("GET", host: origin.host, port: origin.port, target: target)
        if let readable {
            let patterns = readable.map(\.description).joined(separator: ",")
            request.headers.add(Self.readableHeader, patterns)
        }
        return request
    }
}
