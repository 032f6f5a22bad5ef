import ReelCore

extension Command {
    /// Events from the command line into the log.
    static let publish = Command(
        "publish",
        "append events to a stream",
        about: """
            Takes events as JSON, one an operand, or one a line of standard input where there is none. Events without
            site and op get a fresh site, which ends with the last of them. Prints the seq at which each is durable.
            A second `publish` of the same site and op changes nothing, and is answered with a seq where it stands.
            Durable is not applied: --outcome says what an event came to (applied, rejected with a code, gap, …), and
            the exit code is 1 then if one was not applied.
            """,
        operands: [Operand("STREAM"), Operand("EVENT", .any)],
        settings: NodeArguments.all + [NodeArguments.epoch, outcome, CommonSettings.json],
        examples: [
            Example(
                #"reel publish todo '{"type":"insert","model":"task","id":"1","fields":{"title":"Milk"}}'"#,
                "make an object"
            ),
            Example(
                #"reel publish todo '{"type":"update","model":"task","id":"1","fields":{"done":true}}'"#,
                "change it"
            ),
            Example("reel publish todo < events.jsonl", "many events, a line each"),
        ]
    ) { options, console in
        let stream = try streamName(options.operands[0])
        let given = options.operands.dropFirst().map { Array($0.utf8)[...] }
        let texts = given.isEmpty ? try InputFile.read("-").split(separator: UInt8(ascii: "\n")) : Array(given)
        let events = try SentEvents(texts)
        let caller = try await NodeCaller(try NodeArguments.addresses(options))
        let target = "/v1/streams/\(stream)/events" + (options[outcome] ? "?outcome=1" : "")
        var code = ExitCode.done
        for body in events.bodies(epoch: options[NodeArguments.epoch]) {
            for ack in try Acks(try await caller.post(target, body)).acks {
                if options[outcome], !["applied", "duplicate"].contains(ack.outcome) { code = .failed }
                if console.isTerminal, !options[CommonSettings.json] {
                    try console.print("seq \(ack.seq)\(ack.outcome.isEmpty ? "" : ": \(ack.outcome)")")
                } else {
                    try console.write(ack.bytes + [UInt8(ascii: "\n")])
                }
            }
            try console.flush()
        }
        return code
    }

    private static let outcome = Setting<Bool>.flag(
        "outcome",
        "wait for a snapshot node, and say what each event came to"
    )
}

/// Events as they will be sent: each with a site and an op.
struct SentEvents {
    private var events: [[UInt8]] = []

    /// A node takes at most so many events, or bytes, in one request.
    private static let (eventsMax, bytesMax) = (500, 1 << 20)

    /// Ends with 4 for what is no JSON object.
    init(_ texts: [ArraySlice<UInt8>]) throws(Complaint) {
        let site = Site.random()
        var op: Op = 0
        /// The last event with the fresh site, and whether it says itself that the site ends with it.
        var lastOwn: (index: Int, isEnd: Bool)?
        for (index, text) in texts.enumerated() where text.contains(where: { $0 > 0x20 }) {
            var members: Set<String> = []
            do throws(ReelError) {
                try JSONReader.members(of: text) { (reader, key) throws(ReelError) in
                    members.insert(key.string)
                    try reader.skip()
                }
            } catch {
                throw Complaint(.badData, "event \(index + 1): \(error.message)")
            }
            var event = Array(text)
            if members.isDisjoint(with: ["site", "op"]), let brace = event.firstIndex(of: UInt8(ascii: "{")) {
                let head = #""site":"\#(site)","op":\#(op)"# + (members.isEmpty ? "" : ",")
                event.insert(contentsOf: head.utf8, at: brace + 1)
                if let lastOwn, lastOwn.isEnd {
                    throw Complaint(
                        .badData,
                        "event \(index + 1) stands behind one with \"last\", which ended their site"
                    )
                }
                op += 1
                lastOwn = (events.count, members.contains("last"))
            }
            events.append(event)
        }
        if let (index, isEnd) = lastOwn, !isEnd, let brace = events[index].firstIndex(of: UInt8(ascii: "{")) {
            events[index].insert(contentsOf: #""last":true,"#.utf8, at: brace + 1)
        }
        if events.isEmpty { throw Complaint(.usage, "no event was given, expected is one at least") }
    }

    /// The bodies of the requests.
    func bodies(epoch: Epoch?) -> [[UInt8]] {
        var bodies: [[UInt8]] = []
        var (body, count): ([UInt8], Int) = ([], 0)
        for event in events {
            if count > 0, count == Self.eventsMax || body.count + event.count > Self.bytesMax {
                bodies.append(body + "]}".utf8)
                (body, count) = ([], 0)
            }
            if count == 0 {
                body += "{".utf8
                if let epoch {
                    body.append(#""epoch":"#)
                    body.append(quoted: epoch.description)
                    body.append(",")
                }
                body.append(#""events":["#)
            } else {
                body.append(",")
            }
            body += event
            count += 1
        }
        bodies.append(body + "]}".utf8)
        return bodies
    }
}
