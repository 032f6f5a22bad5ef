import Glibc
import ReelCore

extension Command {
    /// Events from the command line into the log.
    static let publish = Command(
        "publish",
        "append events to a stream",
        about: """
            Takes events as JSON, one an operand, or one a line of standard input where there is none. Give site and op
            in all of them, or in none: then each request of up to 500 events gets a site of its own, which ends with
            it. Prints the seq at which each is durable. A second `publish` of the same site and op changes nothing, and
            is answered with a seq where it stands.
            Durable is not applied: the command also prints what each event came to (applied, rejected with a code,
            gap, …), where a snapshot node tells it within 2 s, or with --outcome within 10 s. The exit code is 1 if an
            event was not applied.
            """,
        operands: [Operand("STREAM"), Operand("EVENT", .any)],
        settings: NodeArguments.all + [NodeArguments.epoch, NodeArguments.outcome, noOutcome, CommonSettings.json],
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
        if given.isEmpty, console.isErrorTerminal, isatty(STDIN_FILENO) == 1 {
            console.note("reading events from standard input, Ctrl-D ends them")
        }
        let texts = given.isEmpty ? try InputFile.read("-").split(separator: UInt8(ascii: "\n")) : Array(given)
        let events = try SentEvents(texts)
        let caller = try await NodeCaller(try NodeArguments.addresses(options))
        if options[NodeArguments.outcome], options[noOutcome] {
            throw CommandError(.usage, "--outcome and --no-outcome exclude each other; give one of them, or none")
        }
        let wish = options[NodeArguments.outcome] ? "?outcome=1" : options[noOutcome] ? "?outcome=0" : ""
        let target = "/v1/streams/\(stream)/events" + wish
        let epoch = options[NodeArguments.epoch]
        if epoch == nil, let number = events.firstThatNamesSeqs {
            throw CommandError(
                .usage,
                "event \(number) has a base or a guard; say with --epoch which epoch its seqs belong to"
            )
        }
        var (code, published, hasNote, pinned) = (ExitCode.done, 0, false, Epoch?.none)
        // With a key a request may reach several nodes, or one node several times: its events are consumed once.
        let key = events.haveSites ? nil : "reel-publish-\(Site.random())"
        for (number, request) in events.requests.enumerated() {
            let acks: [Acks.Ack]
            var complaint: CommandError?
            do {
                // The epoch of the first answer keeps later requests from going to a node of another log.
                let body = SentEvents.body(request, epoch: epoch ?? pinned)
                let answer = try Acks(try await Self.post(body, number, key, to: target, caller))
                pinned = Epoch(answer.epoch)
                acks = answer.acks
                if let reason = answer.noOutcome, !hasNote {
                    console.note("the events are durable; what they came to is not known: \(reason)")
                    hasNote = true
                }
            } catch let refusal as Refusal where refusal.status == 503 && !refusal.acks.isEmpty {
                acks = refusal.acks
                let durable = published + acks.count
                complaint = CommandError(
                    .unreachable,
                    "\(durable) events are durable, \(events.count - durable) were not sent; what the last"
                        + " \(acks.count) came to is not known: \(refusal.message)"
                )
            } catch let refusal as Refusal where !refusal.acks.isEmpty {
                acks = refusal.acks
                code = .failed
                let number = refusal.index.map { "event \(published + $0 + 1): " } ?? ""
                console.note("\(number)\(refusal.message)")
            } catch {
                throw Self.complaint(error, behind: published)
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

    /// Sends a request and returns the answer. A request with a key is sent again if its answer was lost.
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

    /// Why the next request was not done. A node takes all of its events or none, so nobody has to publish again what
    /// stands before them.
    private static func complaint(_ error: any Error, behind published: Int) -> CommandError {
        var complaint = CommandError(error)
        if (error as? NoAnswer)?.mayBeDone == true {
            complaint.message += "; the \(published) events before are published, the next ones may be"
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

/// The events of `reel publish`, in requests.
struct SentEvents {
    private var events: [[UInt8]] = []
    /// Each event names its site and op; else none does.
    private(set) var haveSites = false
    /// The first event, counted from 1, that has a base or a guard; nil: none has.
    private(set) var firstThatNamesSeqs: Int?

    /// A node takes at most so many events, or bytes, in one request.
    private static let (eventsMax, bytesMax) = (500, 1 << 20)

    /// Throws a complaint with exit code 4 for an event that is no JSON object, and if only some of the events have a
    /// site or an op.
    init(_ texts: [ArraySlice<UInt8>]) throws(CommandError) {
        for (index, text) in texts.filter({ $0.contains { $0 > 0x20 } }).enumerated() {
            var members: Set<String> = []
            do throws(ReelError) {
                // A node would name the bytes of the whole request.
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
            throw CommandError(.usage, "found no event on the command line or standard input; expected is one at least")
        }
    }

    /// Whether an event has a base or a guard. Of one that is not sound a node says why.
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
