import ReelCore
import ReelNode

/// A page of the list of streams, as a node answers it.
struct StreamPage {
    private(set) var streams: [ListedStream] = []
    /// What the next page begins behind; nil: this page is the last.
    private(set) var next: String?

    /// Ends with 4 for what is no such answer.
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

    /// The target of the request for a page.
    static func target(prefix: String = "", after: String = "", limit: Int) -> String {
        var question = StreamListRequest()
        (question.prefix, question.after, question.limit) = (prefix, after, limit)
        return question.target
    }
}
