import ReelCore

extension Command {
    /// A range of a stream.
    static let fetch = Command(
        "fetch",
        "print the events of a range of a stream",
        about: """
            One event a line, as it stands in the log, with its seq. What the node proves with them (all events of the
            stream in a range of seqs, and no others) stands on standard error, and so does that no event was ever
            published to the stream.
            """,
        operands: [Operand("STREAM")],
        settings: NodeArguments.all + [from, to, NodeArguments.epoch, NodeArguments.outcome],
        examples: [
            Example("reel fetch todo --from 10 --to 14", "what a device missed"),
            Example("reel fetch todo", "all that the log still has"),
        ]
    ) { options, console in
        let stream = try streamName(options.operands[0])
        if let from = options[from], let to = options[to], to < from {
            throw CommandError(.usage, "--to is \(to), below --from \(from)")
        }
        let caller = try await NodeCaller(try NodeArguments.addresses(options))
        let path = "/v1/streams/\(stream)"
        let place = try StreamAnswer(try await caller.get("\(path)/head"))
        let epoch = options[NodeArguments.epoch]?.description ?? place.epoch
        let start = options[from].map(Seq.init) ?? max(0, place.first)
        let last = options[to].map(Seq.init) ?? .max
        let wish = options[NodeArguments.outcome] ? "&outcome=1" : ""
        var after = start - 1
        var (proven, count): (StreamAnswer?, Int) = (nil, 0)
        // In another epoch the node has something to say, and of what lies beyond its end there is nothing to ask.
        while after < last, epoch != place.epoch || after < place.head {
            let answer = try StreamAnswer(
                try await caller.get("\(path)/events?after=\(after)&limit=10000&epoch=\(epoch)" + wish)
            )
            for event in answer.events where event.seq <= last {
                try console.write(event.bytes + [UInt8(ascii: "\n")])
                count += 1
            }
            guard answer.to > after else { break }
            after = answer.to
            proven = answer
            if answer.to >= answer.head { break }
        }
        // The gateway may have stopped reading: then the head is not the end of the log, and this request is refused.
        if epoch == place.epoch, place.head <= after || proven == nil, place.head < last {
            do {
                _ = try await caller.get("\(path)/events?after=\(place.head)&limit=1&epoch=\(epoch)")
            } catch let refusal as Refusal {
                let printed = proven == nil ? "nothing is printed" : "printed are the events up to seq \(after)"
                let place = "partition \(place.partition) behind seq \(place.head)"
                throw CommandError(.failed, "\(printed); \(place) cannot be read: \(refusal.message)")
            }
        }
        if count == 0, let text = await MissingStream.textIfMissing(stream, caller) { console.note(text) }
        guard let proven else {
            console.note(
                "nothing of \(stream) from seq \(start) on: partition \(place.partition) "
                    + (place.head < 0 ? "is empty" : "ends at seq \(place.head)")
            )
            return .done
        }
        console.note(
            "\(count == 0 ? "0 events" : "all") of \(stream) in \(start)…\(min(after, last)) of epoch \(proven.epoch)"
        )
        return .done
    }

    private static let from = Setting<Int?>.number(
        "from",
        "SEQ",
        0...Int(largestInteger),
        "the first seq; else the first that the log still has"
    )
    private static let to = Setting<Int?>.number("to", "SEQ", 0...Int(largestInteger), "the last seq; else the head")
}
