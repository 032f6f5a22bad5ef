import ReelCore
import ReelNode

/// A stream to which no event was ever published: perhaps its name is misspelt.
enum MissingStream {
    /// Names that are looked through for those that are near.
    private static let candidatesMax = StreamListRequest.limitMax
    /// Names that are named at most.
    private static let namedMax = 3

    /// What to tell the user: that the stream does not exist, and which names are near.
    static func text(_ stream: StreamName, _ caller: NodeCaller) async -> String {
        var text = "there is no stream \(stream) yet: no event was ever published to it"
        let names = await near(stream, caller)
        if !names.isEmpty { text += "; did you mean \(names.joined(separator: ", "))?" }
        return text
    }

    /// The text where the stream does not exist; nil: it does, or no node tells it.
    static func textIfMissing(_ stream: StreamName, _ caller: NodeCaller) async -> String? {
        // The name itself is the first of those that begin with it.
        let target = StreamPage.target(prefix: stream.description, limit: 1)
        guard let page = await page(target, caller), page.streams.first?.stream != stream else { return nil }
        return await text(stream, caller)
    }

    /// Existing names that are near, the nearest first, as far as the token gives them to read.
    private static func near(_ stream: StreamName, _ caller: NodeCaller) async -> [String] {
        // Most slips leave the first letters as they are. Of many streams only a page is looked through.
        for prefix in [String(stream.description.prefix(2)), ""] {
            let target = StreamPage.target(prefix: prefix, limit: candidatesMax)
            guard let page = await page(target, caller) else { return [] }
            let candidates = page.streams.map(\.stream.description)
            let names = Array(nearestNames(to: stream.description, among: candidates).prefix(namedMax))
            if !names.isEmpty { return names }
        }
        return []
    }

    /// Nil: no node tells it, such as one of an older build.
    private static func page(_ target: String, _ caller: NodeCaller) async -> StreamPage? {
        guard let body = try? await caller.get(target) else { return nil }
        return try? StreamPage(body)
    }
}
