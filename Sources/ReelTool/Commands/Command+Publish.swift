import Glibc
import ReelCore

extension Command {
    /// `reel publish`: events from the command line into the log.
    static let publish = Command(
        "publish",
        "append events to a stream",
        about: """
            Reads events as JSON: one for each operand, or without operands one for each line of standard input. Give
            site and op in all events, or in none. Without them, each request of up to 500 events gets a new site, which
            ends with the request. Prints the seq at which each event is durable. A second `publish` of the same site
            and op changes nothing, and its answer is a seq of the event.

            A durable event is not always applied. The command also prints the outcome of each event, such as
            applied, gap, or rejected with a code. It waits up to 2 s for a snapshot node to tell the outcome, with
            --outcome up to 10 s. The exit code is 1 if an event was not applied.
            """,
        operands: [Operand("STREAM"), Operand("EVENT", .any)],
        settings: NodeArguments.all + [NodeArguments.epoch, NodeArguments.outcome, noOutcome, CommonSettings.json],
        examples: [
            Example(
                #"reel publish todo '{"type":"insert","model":"task","id":"1","fields":{"title":"Milk"}}'"#,
                "create an object"
            ),
            Example(
                #"reel publish todo '{"type":"update","model":"task","id":"1","fields":{"done":true}}'"#,
                "change it"
            ),
            Example("reel publish todo < events.jsonl", "many events, one a line"),
        ]
    ) { options, console in
        let stream = try streamName(options.operands[0])
        let given = options.operands.dropFirst().map { Array($0.utf8)[...] }
        if given.isEmpty, console.isErrorTerminal, isatty(STDIN_FILENO) == 1 {
            console.note("reading events from standard input, Ctrl-D ends them")
        }
        let texts = given.isEmpty ? try InputFile.read("-").split(separator: UInt8(ascii: "\n")) : Array(given)
        let events = try SentEvents(texts)
        let caller = try await NodeCaller(try NodeArguments.addresses(options))
        if options[NodeArguments.outcome], options[noOutcome] {
            throw CommandError(.usage, "--outcome and --no-outcome exclude each other; give one of them, or none")
        }
        let query = options[NodeArguments.outcome] ? "?outcome=1" : options[noOutcome] ? "?outcome=0" : ""
        let target = "/v1/streams/\(stream)/events" + query
        let epoch = options[NodeArguments.epoch]
        if epoch == nil, let number = events.firstThatNamesSeqs {
            throw CommandError(
                .usage,
                "event \(number) has a base or a guard; give the epoch of its seqs with --epoch"
            )
        }
        var (code, published, hasNote, pinned) = (ExitCode.done, 0, false, Epoch?.none)
        // A request with a key can reach several nodes, or one node several times: its events are consumed once.
        let key = events.haveSites ? nil : "reel-publish-\(Site.random())"
        for (number, request) in events.requests.enumerated() {
            let acks: [Acks.Ack]
            var complaint: CommandError?
            do {
                // With the epoch of the first answer, a node of another log refuses the later requests.
                let body = SentEvents.body(request, epoch: epoch ?? pinned)
                let answer = try Acks(try await Self.post(body, number, key, to: target, caller))
                pinned = Epoch(answer.epoch)
                acks = answer.acks
                if let reason = answer.noOutcome, !hasNote {
                    console.note("the events are durable; their outcomes are unknown: \(reason)")
                    hasNote = true
                }
            } catch let refusal as Refusal where refusal.status == 503 && !refusal.acks.isEmpty {
                acks = refusal.acks
                let durable = published + acks.count
                complaint = CommandError(
                    .unreachable,
                    "\(durable) events are durable, \(events.count - durable) were not sent; the outcomes of the last"
                        + " \(acks.count) are unknown: \(refusal.message)"
                )
            } catch let refusal as Refusal where !refusal.acks.isEmpty {
                acks = refusal.acks
                code = .failed
                let number = refusal.index.map { "event \(published + $0 + 1): " } ?? ""
                console.note("\(number)\(refusal.message)")
            } catch {
                throw Self.complaint(error, after: published)
            }
            published += acks.count
            for ack in acks {
                if !["", "applied", "duplicate"].contains(ack.outcome) { code = .failed }
                if console.isTerminal, !options[CommonSettings.json] {
                    try console.print("seq \(ack.seq)\(ack.outcome.isEmpty ? "" : ": \(ack.outcome)")")
                } else {
                    try console.write(ack.bytes + [UInt8(ascii: "\n")])
                }
            }
            try console.flush()
            if let complaint { throw complaint }
        }
        return code
    }

    /// Sends a request and returns the body of the answer.
    ///
    /// - Parameters:
    ///   - body: the body of the request.
    ///   - number: the number of the request in this run of the command.
    ///   - key: the prefix of the `Idempotency-Key`. A request with a key is sent again if its answer was lost.
    ///   - target: the path and query.
    ///   - caller: the client.
    private static func post(
        _ body: [UInt8],
        _ number: Int,
        _ key: String?,
        to target: String,
        _ caller: NodeCaller
    ) async throws -> [UInt8] {
        guard let key else { return try await caller.post(target, body) }
        var pause = Duration.milliseconds(250)
        while true {
            do {
                return try await caller.post(target, body, key: "\(key)-\(number)")
            } catch let failure as NoAnswer where failure.mayBeDone && pause < .seconds(4) {
                try await Task.sleep(for: pause)
                pause *= 2
            }
        }
    }

    /// Adds the number of published events to `error`, the error of the next request. A node accepts all events of a
    /// request or none, so the `published` events before it need not be sent again.
    private static func complaint(_ error: any Error, after published: Int) -> CommandError {
        var complaint = CommandError(error)
        if (error as? NoAnswer)?.mayBeDone == true {
            complaint.message += "; the \(published) events before are published, the next ones may be, too"
        } else if let index = (error as? Refusal)?.index {
            let before = published == 0 ? "no event is published" : "\(published) events before it are published"
            complaint.message = "event \(published + index + 1): \(complaint.message); \(before)"
        } else if published > 0 {
            complaint.message += "; the first \(published) events are published"
        }
        return complaint
    }

    private static let noOutcome = Setting<Bool>.flag(
        "no-outcome",
        "print the seqs as soon as the events are durable"
    )
}

/// The events of `reel publish`, grouped into requests.
struct SentEvents {
    private var events: [[UInt8]] = []
    /// True if every event has a site and an op; otherwise none has.
    private(set) var haveSites = false
    /// The number, from 1, of the first event that has a base or a guard; nil if none has.
    private(set) var firstThatNamesSeqs: Int?

    /// The largest number of events, and of bytes, in one request.
    private static let (eventsMax, bytesMax) = (500, 1 << 20)

    /// Checks the events `texts`.
    ///
    /// - Throws: a `CommandError`. Its exit code is 4 if an event is not a JSON object, or only some events have a site
    ///   or an op. It is 2 if there is no event.
    init(_ texts: [ArraySlice<UInt8>]) throws(CommandError) {
        for (index, text) in texts.filter({ $0.contains { $0 > 0x20 } }).enumerated() {
            var members: Set<String> = []
            do throws(ReelError) {
                // Checked here, because a node would count bytes from the beginning of the whole request.
                var canonical: [UInt8] = []
                try text.withUnsafeBufferPointer { (text) throws(ReelError) in
                    try CanonicalJSON.canonicalize(Bytes(text), into: &canonical)
                }
                try JSONReader.members(of: text, shape: .badEvent) { (reader, key) throws(ReelError) in
                    members.insert(key.string)
                    try reader.skip()
                }
            } catch {
                throw CommandError(.badData, "event \(index + 1): \(error); no event is published")
            }
            let hasSite = !members.isDisjoint(with: ["site", "op"])
            if index == 0 { haveSites = hasSite }
            guard hasSite == haveSites else {
                throw CommandError(
                    .badData,
                    "event \(index + 1) has \(hasSite ? "a site or an op" : "neither site nor op"), unlike event 1; "
                        + "give both in all events, or in none; no event is published"
                )
            }
            if firstThatNamesSeqs == nil, Self.namesSeqs(text, members) { firstThatNamesSeqs = index + 1 }
            events.append(Array(text))
        }
        if events.isEmpty {
            throw CommandError(.usage, "found no event on the command line or standard input; expected is at least one")
        }
    }

    /// Returns true if the event has a base or a guard. False for an event that is not valid: the node reports why.
    private static func namesSeqs(_ text: ArraySlice<UInt8>, _ members: Set<String>) -> Bool {
        var event = Array(text)
        if members.isDisjoint(with: ["site", "op"]), let brace = event.firstIndex(of: UInt8(ascii: "{")) {
            let site = #""site":"\#(Site.random())","op":0"# + (members.isEmpty ? "" : ",")
            event.insert(contentsOf: site.utf8, at: brace + 1)
        }
        var intake = EventIntake(limit: Limits.value)
        var value: [UInt8] = []
        do throws(ReelError) {
            try event.withUnsafeBufferPointer { (event) throws(ReelError) in
                try intake.take(Bytes(event), stamp: EventIntake.Stamp(by: nil, atMs: 0, base: .none), into: &value)
            }
            return intake.namesSeqs
        } catch {
            return false
        }
    }

    /// The number of events.
    var count: Int { events.count }

    /// The events of each request, as a JSON array.
    var requests: [[UInt8]] {
        var requests: [[UInt8]] = []
        var (list, count): ([UInt8], Int) = ([], 0)
        for event in events {
            if count > 0, count == Self.eventsMax || list.count + event.count > Self.bytesMax {
                requests.append(list + "]".utf8)
                (list, count) = ([], 0)
            }
            list += (count == 0 ? "[" : ",").utf8
            list += event
            count += 1
        }
        requests.append(list + "]".utf8)
        return requests
    }

    /// The body of a request with these events.
    static func body(_ events: [UInt8], epoch: Epoch?) -> [UInt8] {
        Array("{".utf8) + (epoch.map { Array(#""epoch":"\#($0)","#.utf8) } ?? []) + Array(#""events":"#.utf8) + events
            + Array("}".utf8)
    }
}
