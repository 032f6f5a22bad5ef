import ReelCore

extension Command {
    /// `reel fetch`: the events of a range of a stream.
    static let fetch = Command(
        "fetch",
        "print the events of a range of a stream",
        about: """
            Prints an event a line, as the log has it, with its seq. Standard error shows the range of seqs for which
            the node proves that these are all events. It also shows that no event was ever published to the stream, if
            that is so.
            """,
        operands: [Operand("STREAM")],
        settings: NodeArguments.all + [from, to, NodeArguments.epoch, NodeArguments.outcome],
        examples: [
            Example("reel fetch todo --from 10 --to 14", "a range that a device missed"),
            Example("reel fetch todo", "all events that the log has"),
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
        let outcomeQuery = options[NodeArguments.outcome] ? "&outcome=1" : ""
        var after = start - 1
        var (proven, count): (StreamAnswer?, Int) = (nil, 0)
        // A request for another epoch is always sent, so that the node reports it. In the node's epoch, there is
        // nothing to request beyond the head.
        while after < last, epoch != place.epoch || after < place.head {
            let answer = try StreamAnswer(
                try await caller.get("\(path)/events?after=\(after)&limit=10000&epoch=\(epoch)" + outcomeQuery)
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
        // If the gateway has stopped reading, its head is not the end of the log. It then refuses this request.
        if epoch == place.epoch, place.head <= after || proven == nil, place.head < last {
            do {
                _ = try await caller.get("\(path)/events?after=\(place.head)&limit=1&epoch=\(epoch)")
            } catch let refusal as Refusal {
                let printed = proven == nil ? "no event is printed" : "the events up to seq \(after) are printed"
                let place = "partition \(place.partition) after seq \(place.head)"
                throw CommandError(.failed, "\(printed); \(place) cannot be read: \(refusal.message)")
            }
        }
        if count == 0, let text = await MissingStream.textIfMissing(stream, caller) { console.note(text) }
        guard let proven else {
            console.note(
                "no event of \(stream) from seq \(start) on: partition \(place.partition) "
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
        "first seq; default: the first that the log has"
    )
    private static let to = Setting<Int?>.number("to", "SEQ", 0...Int(largestInteger), "last seq; default: the head")
}
