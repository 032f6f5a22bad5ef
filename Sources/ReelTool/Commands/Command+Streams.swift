import ReelBase
import ReelCore
import ReelNode

extension Command {
    /// `reel streams`: the list of streams.
    static let streams = Command(
        "streams",
        "list the streams by name",
        about: """
            Asks a node for all streams, or for those whose names begin with PREFIX. A stream exists as soon as an event
            was published to it. If the nodes have keys, only the streams that the token can read are shown. OBJECTS is
            the number of objects. BYTES is their size: models, ids, and fields as canonical JSON. SITES is the number
            of sites that have not ended. LAST is the seq of the last event and its age by the gateway's clock.

            A dash is a value that the node does not know: OBJECTS, BYTES and the age after an upgrade of the node,
            until the next event of the stream; LAST if the stream has no event since the epoch began.
            """,
        operands: [Operand("PREFIX", .optional)],
        settings: NodeArguments.all + [CommonSettings.json],
        examples: [
            Example("reel streams", "all streams"),
            Example("reel streams todo-", "the streams whose names begin with todo-"),
            Example("reel streams --json | jq -r .stream", "only the names, for a program"),
        ]
    ) { options, console in
        let prefix = options.operands.first ?? ""
        guard StreamListRequest.isPrefix(prefix) else {
            throw CommandError(
                .usage,
                "no stream's name begins with `\(prefix)`; expected is a part of \(StreamName.rule)"
            )
        }
        let caller = try await NodeCaller(try NodeArguments.addresses(options))
        let asJSON = options[CommonSettings.json]
        var table = TextTable(
            "NAME",
            "PARTITION",
            "OBJECTS",
            "SITES",
            "BYTES",
            "LAST",
            numbers: ["PARTITION", "OBJECTS", "SITES", "BYTES"]
        )
        var (after, count) = ("", 0)
        while true {
            let target = StreamPage.target(prefix: prefix, after: after, limit: StreamListRequest.limitMax)
            let page = try StreamPage(try await caller.get(target))
            let nowMs = WallClock.nowMs()
            count += page.streams.count
            for stream in page.streams {
                if asJSON {
                    var line = JSONObjectWriter()
                    stream.write(to: &line)
                    try console.write(line.finishLine())
                } else {
                    table.add(row(of: stream, nowMs: nowMs))
                }
            }
            guard let next = page.next, next > after else { break }
            after = next
        }
        if count == 0 {
            console.note(
                prefix.isEmpty ? "there are no streams yet" : "there is no stream whose name begins with \(prefix)"
            )
        } else if !asJSON {
            for line in table.lines { try console.print(line) }
        }
        return .done
    }

    private static func row(of stream: ListedStream, nowMs: Int64) -> [String] {
        let time = stream.atMs.map { ", \(age(ms: nowMs - $0)) ago" } ?? ""
        return [
            stream.stream.description, "\(stream.partition)", stream.objects.map { "\($0)" } ?? "-", "\(stream.sites)",
            stream.bytes.map { "\($0)" } ?? "-", stream.seq < 0 ? "-" : "seq \(stream.seq)\(time)",
        ]
    }
}
