import ReelCore
import ReelNode

/// The message for a stream to which no event was ever published. Its name may be misspelled.
enum MissingStream {
    /// The largest number of names that are compared.
    private static let candidatesMax = StreamListRequest.limitMax
    /// The largest number of names that are suggested.
    private static let namedMax = 3

    /// Returns the message for the user: the stream does not exist, with similar names of existing streams.
    static func text(_ stream: StreamName, _ caller: NodeCaller) async -> String {
        var text = "there is no stream \(stream) yet: no event was ever published to it"
        let names = await near(stream, caller)
        if !names.isEmpty { text += "; did you mean \(names.joined(separator: ", "))?" }
        return text
    }

    /// Returns the message if the stream does not exist; nil if it exists, or no node answers.
    static func textIfMissing(_ stream: StreamName, _ caller: NodeCaller) async -> String? {
        // In the list of names that begin with a name, that name is the first.
        let target = StreamPage.target(prefix: stream.description, limit: 1)
        guard let page = await page(target, caller), page.streams.first?.stream != stream else { return nil }
        return await text(stream, caller)
    }

    /// Returns existing names that are near, the nearest first. Only streams that the token can read are listed.
    private static func near(_ stream: StreamName, _ caller: NodeCaller) async -> [String] {
        // Most typing errors keep the first letters. Of many streams, only one page is compared.
        for prefix in [String(stream.description.prefix(2)), ""] {
            let target = StreamPage.target(prefix: prefix, limit: candidatesMax)
            guard let page = await page(target, caller) else { return [] }
            let candidates = page.streams.map(\.stream.description)
            let names = Array(nearestNames(to: stream.description, among: candidates).prefix(namedMax))
            if !names.isEmpty { return names }
        }
        return []
    }

    /// Reads a page of streams; nil if no node answers it, for example because of an older build.
    private static func page(_ target: String, _ caller: NodeCaller) async -> StreamPage? {
        guard let body = try? await caller.get(target) else { return nil }
        return try? StreamPage(body)
    }
}
