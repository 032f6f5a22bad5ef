import ReelCore
import ReelNode

/// A page of the list of streams, from a node.
struct StreamPage {
    private(set) var streams: [ListedStream] = []
    /// The name after which the next page begins; nil if this is the last page.
    private(set) var next: String?

    /// Parses the body of an answer.
    ///
    /// - Throws: a `CommandError` with exit code 4 if it is not such an answer.
    init(_ body: [UInt8]) throws(CommandError) {
        var hasStreams = false
        try JSONReader.members(ofAnswer: body) { (reader, key) throws(ReelError) in
            switch key.raw {
            case "streams":
                hasStreams = true
                try reader.array { (reader) throws(ReelError) in streams.append(try ListedStream(&reader)) }
            case "next": next = try reader.string()
            default: try reader.skip()
            }
        }
        guard hasStreams else { throw CommandError(.badData, "a node's answer has no streams") }
    }

    /// Returns the target of the request for a page.
    ///
    /// - Parameters:
    ///   - prefix: the beginning of the names.
    ///   - after: the name after which the page begins; empty for the first page.
    ///   - limit: the largest number of streams in the page.
    static func target(prefix: String = "", after: String = "", limit: Int) -> String {
        var request = StreamListRequest()
        (request.prefix, request.after, request.limit) = (prefix, after, limit)
        return request.target
    }
}
