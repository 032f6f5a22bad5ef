import ReelCore

extension Command {
    /// A range of a stream.
    static let fetch = Command(
        "fetch",
        "print the events of a range of a stream",
        about: """
            One event a line, as it stands in the log, with its seq. What the node proves with them (all events of the
            stream in a range of seqs, and no others) stands on standard error.
            """,
        operands: [Operand("STREAM")],
        settings: NodeArguments.all + [from, to, NodeArguments.epoch],
        examples: [
            Example("reel fetch todo --from 10 --to 14", "what a device missed"),
            Example("reel fetch todo", "all that the log still has"),
        ]
    ) { options, console in
        let stream = try streamName(options.operands[0])
        let caller = try await NodeCaller(try NodeArguments.addresses(options))
        let last = options[to].map(Seq.init) ?? .max
        var after = Seq(options[from]) - 1
        var proven: StreamAnswer?
        while after < last {
            let target = "/v1/streams/\(stream)/events?after=\(after)&limit=10000"
            let epoch = options[NodeArguments.epoch] ?? proven?.epoch
            let answer = try StreamAnswer(try await caller.get(target + (epoch.map { "&epoch=\($0)" } ?? "")))
            for event in answer.events where event.seq <= last {
                try console.write(event.bytes + [UInt8(ascii: "\n")])
            }
            guard answer.to > after else { break }
            after = answer.to
            proven = answer
            if answer.to >= answer.head { break }
        }
        guard let proven else {
            console.note("nothing at or behind seq \(options[from])")
            return .done
        }
        console.note("all of \(stream) in \(options[from])…\(min(after, last)) of epoch \(proven.epoch)")
        return .done
    }

    private static let from = Setting<Int>.number("from", "SEQ", 0...Int(largestInteger), default: 0, "the first seq")
    private static let to = Setting<Int?>.number("to", "SEQ", 0...Int(largestInteger), "the last seq; else the head")

}
