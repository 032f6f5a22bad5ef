import ReelClient
import ReelCore
import ReelNet

extension Command {
    /// `reel tail`: the events of a stream as they arrive.
    static let tail = Command(
        "tail",
        "follow a stream and print its events as they arrive",
        about: """
            Prints each event once, in order, until it is interrupted. If the connection to a gateway is lost, it
            continues after the last proven seq at another gateway: one of --url, or one that the gateway has named
            (gateways with --advertise). If the epoch changes, it continues in the next epoch, unless --epoch is given.

            Prints lines of JSON; on a terminal without --json, a row for each event. If no event was ever published to
            the stream, it prints that on standard error, and waits for the first one.
            """,
        operands: [Operand("STREAM")],
        settings: NodeArguments.all + [tailAfter, NodeArguments.epoch, NodeArguments.outcome, CommonSettings.json],
        examples: [
            Example("reel tail todo", "new events from now on"),
            Example("reel tail todo --after -1 --json | jq .type", "all events, for a program"),
            Example("reel tail todo --outcome", "each event with its outcome, after a snapshot node has folded it"),
        ]
    ) { options, console in
        let stream = try streamName(options.operands[0])
        let addresses = try NodeArguments.addresses(options)
        var position = try TailSocket.Position(options)
        let asRows = console.isTerminal && !options[CommonSettings.json]
        let loop = try EventLoop()
        defer { loop.stop() }
        let start = ContinuousClock.now
        var nowMs: Int64 { Int64((.now - start) / .milliseconds(1)) }
        var failover = Failover(nodes: addresses.map(\.description), seed: .random(in: 0 ... .max), startsAtFirst: true)
        var (tries, next) = (0, failover.next(nowMs: 0))
        // In parallel, because the tail itself waits for the first event of the stream.
        let hint = Task { await noteIfMissing(stream, addresses, console) }
        defer { hint.cancel() }
        while let attempt = next {
            try await Task.sleep(for: .milliseconds(attempt.atMs - nowMs))
            let address = try NodeArguments.address(attempt.node, options)
            let begunMs = nowMs
            let outcome = await TailSocket.follow(
                stream,
                from: position,
                hasOutcomes: options[NodeArguments.outcome],
                on: address,
                loop: loop
            ) { first in
                guard console.isErrorTerminal else { return }
                console.note("following \(stream) from seq \(first), Ctrl-C ends it")
            } deliver: { event throws(CommandError) in
                if asRows {
                    try console.print(EventRow(event).text)
                } else {
                    var line: [UInt8] = []
                    event.value.withUnsafeBytes { DeliveredEvent.write(seq: event.seq, value: $0, to: &line) }
                    try console.write(line + [UInt8(ascii: "\n")])
                }
                try console.flush()
            }
            position = outcome.position
            guard case .lost(let reason) = outcome.end else {
                if case .refused(let complaint) = outcome.end { throw complaint }
                return .done
            }
            tries += 1
            if outcome.wasWelcome {
                failover.learn(outcome.nodes.compactMap { try? NodeAddress($0).description })
                failover.welcomed(nowMs: begunMs)
            }
            failover.lost(nowMs: nowMs)
            next = failover.next(nowMs: nowMs)
            guard position.isKnown || tries < 2 * addresses.count else {
                console.note("\(address): \(reason)")
                throw CommandError(.unreachable, "no gateway could be reached; `reel doctor` can show the reason")
            }
            let then = next.flatMap { $0.node == attempt.node ? nil : "continuing with \($0.node)" }
            console.note("\(address): \(reason); \(then ?? "trying again")")
        }
        return .done
    }

    /// Prints a note if no event was ever published to the stream.
    private static func noteIfMissing(_ stream: StreamName, _ nodes: [NodeAddress], _ console: Console) async {
        guard let caller = try? await NodeCaller(nodes),
            let text = await MissingStream.textIfMissing(stream, caller), !Task.isCancelled
        else { return }
        console.note("\(text); waiting for its first event")
    }

    fileprivate static let tailAfter = Setting<String>.text(
        "after",
        "SEQ|now",
        default: "now",
        "print what follows this seq; -1: all that the log has"
    )
}

extension TailSocket.Position {
    fileprivate init(_ options: Options) throws(CommandError) {
        self.init(epoch: nil, seq: nil)
        let text = options[Command.tailAfter]
        if text != "now" {
            guard let seq = Seq(text), Seq.none...largestInteger ~= seq else {
                throw CommandError(.usage, "--after is `\(text)`; expected is a seq from -1 on, or now")
            }
            self.seq = seq
        }
        epoch = options[NodeArguments.epoch]
        isPinned = epoch != nil
    }
}

/// An event as a row for people: its seq, its type, its object and its content.
private struct EventRow {
    let text: String

    init(_ event: DeliveredEvent) {
        var members: [String: String] = [:]
        event.value.withUnsafeBytes { value in
            var reader = JSONReader(value, levels: ClientFrame.levels, shape: .badEvent)
            try? reader.object { (reader, key) throws(ReelError) in
                let isText = try reader.kind() == .string
                members[key.string] = isText ? try reader.string() : String(decoding: try reader.raw(), as: UTF8.self)
            }
        }
        let object = members["model"].map { "\($0)/\(members["id"] ?? "")" }
        let outcome = members["outcome"]
        let content = ["fields", "ops", "events", "if"].compactMap { members[$0] }
        let parts = [outcome, members["type"], object] + content + [members["by"].map { "by \($0)" }]
        text = "\(event.seq)  " + parts.compactMap { $0 }.joined(separator: " ")
    }
}
