package import ReelNet

/// The header of a response about the state of a stream to which no event was ever published.
package enum UnpublishedStream {
    /// The name and the value of the header.
    package static let header = "reel-stream"
    package static let value = "unpublished"

    /// Returns true if a response has the header.
    package static func isSaid(in headers: HTTPHeaders) -> Bool { headers[header] == value }
}
