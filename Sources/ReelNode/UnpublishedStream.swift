package import ReelNet

/// How an answer about the state of a stream says that no event was ever published to it.
package enum UnpublishedStream {
    /// The header and its value.
    package static let header = "reel-stream"
    package static let value = "unpublished"

    /// True if an answer says it.
    package static func isSaid(in headers: HTTPHeaders) -> Bool { headers[header] == value }
}
