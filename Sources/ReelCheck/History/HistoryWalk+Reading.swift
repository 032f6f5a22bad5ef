// Checks the lines of a reader.
extension HistoryWalk {
    mutating func subscribed(_ line: HistoryLine) throws(Fault) {
        let key = try key(line)
        if let old = epochs[key.stream], old != key.epoch {
            view(StreamKey(epoch: old, stream: key.stream)).proven = nil
        }
        epochs[key.stream] = key.epoch
        subscriptions[key.stream] = line.place.lowerBound
        mustEnd = true
        let view = view(key)
        let after = try line.required(line.after, "after")
        view.start = view.start ?? after
        view.proven = after
        view.isFiltered = line.isFiltered
        let number = try line.required(line.partition, "partition")
        view.partitionNumber = number
        raise(PartitionKey(epoch: key.epoch, partition: number), to: try line.required(line.head, "head"), view, line)
    }

    mutating func lagged(_ line: HistoryLine) throws(Fault) {
        let key = try key(line)
        let view = view(key)
        view.proven = nil
        guard let partition = view.partition else { return }
        let place = PartitionKey(epoch: key.epoch, partition: Int64(partition.number))
        raise(place, to: try line.required(line.head, "head"), view, line)
    }

    mutating func loaded(_ line: HistoryLine) throws(Fault) {
        let view = view(try key(line))
        let seq = try line.required(line.seq, "seq")
        bound(seq, view, line)
        view.start = max(view.start ?? seq, seq)
    }

    /// Checks a head that was reported on this connection: it must not be below an earlier one, nor beyond the log's
    /// end.
    private mutating func raise(_ place: PartitionKey, to seq: Int64, _ view: View, _ line: HistoryLine) {
        if let last = heads[place], seq < last {
            result.findings.violation(
                .heads,
                "the head of partition \(place.partition) was \(last) on this connection, and then \(seq)",
                [quote(line)]
            )
        }
        heads[place] = seq
        bound(seq, view, line)
    }

    /// Checks that the log contains a seq that a party knows.
    private mutating func bound(_ seq: Int64, _ view: View, _ line: HistoryLine) {
        result.findings.fact(.heads)
        guard let partition = view.partition, seq > partition.last, isJudgeable(seq, partition) else { return }
        result.findings.violation(
            .heads,
            "seq \(seq) of partition \(partition.number) was proven or said to be the head, and the log ends at "
                + "\(partition.last)",
            [quote(line), partition.quote(partition.last)]
        )
    }

    // MARK: Frames

    mutating func received(_ line: HistoryLine) throws(Fault) {
        let view = view(try key(line))
        let from = try line.required(line.from, "from")
        let to = try line.required(line.to, "to")
        var frame = Frame(from: from, to: to, proven: line.isFetched ? nil : view.proven)
        var reader = LineReader(file.bytes, try line.required(line.list, "events"))
        try reader.array { (reader) throws(Fault) in
            let event = try reader.event()
            take(event, &frame, view, line)
        }
        result.arrived += frame.count
        result.findings.fact(.coverage)
        result.findings.fact(.oneOrder, frame.count)
        result.findings.fact(.phantom, frame.count)
        if !line.isFetched { pushed(frame, view, line) }
        guard to >= from else { return }
        view.covered.insert(from...to)
        guard let partition = view.partition, !view.isFiltered else { return }
        if to > partition.last {
            bound(to, view, line)
        } else if isJudgeable(from, partition), isJudgeable(to, partition),
            partition.count(view.number, in: from...to) > frame.count
        {
            let seen = try seqs(of: line)
            guard let missing = partition.missing(view.number, in: from...to, from: seen) else { return }
            result.findings.violation(
                .coverage,
                "a frame proves the seqs \(from) to \(to) and leaves out seq \(missing), where the log has an event",
                [quote(line), partition.quote(missing)]
            )
        }
    }

    /// A frame during the check of its events.
    private struct Frame {
        let from: Int64
        let to: Int64
        /// For a pushed frame: the seq up to which its subscription had proven the stream before; otherwise nil.
        let proven: Int64?
        var count = 0
        var last = Int64.min
    }

    private mutating func take(_ event: LineReader.Event, _ frame: inout Frame, _ view: View, _ line: HistoryLine) {
        if event.seq <= frame.last {
            result.findings.violation(
                .doubled,
                event.seq == frame.last
                    ? "seq \(event.seq) is twice in a frame" : "seq \(event.seq) follows \(frame.last) in a frame",
                [quote(line)]
            )
            return
        }
        frame.last = event.seq
        frame.count += 1
        if event.seq < frame.from || event.seq > frame.to {
            result.findings.violation(
                .coverage,
                "a frame that proves the seqs \(frame.from) to \(frame.to) carries seq \(event.seq)",
                [quote(line)]
            )
        }
        if let proven = frame.proven {
            result.findings.fact(.doubled)
            if event.seq <= proven {
                result.findings.violation(
                    .doubled,
                    "seq \(event.seq) was pushed again, where the subscription had proven all up to \(proven)",
                    [quote(line)]
                )
            }
        }
        guard let partition = view.partition, isJudgeable(event.seq, partition) else { return }
        guard let hash = partition.delivered(event.seq, stream: view.number) else {
            result.findings.violation(
                .phantom,
                event.seq > partition.last
                    ? "seq \(event.seq) arrived, and the log of partition \(partition.number) ends at \(partition.last)"
                    : "seq \(event.seq) arrived, where the log has no event of this stream",
                [quote(line), partition.quote(min(event.seq, partition.last))]
            )
            return
        }
        guard hash != event.hash else { return }
        result.findings.violation(
            .oneOrder,
            "at seq \(event.seq) another event arrived (\(hex(event.hash, digits: 16))) than the log has "
                + "(\(hex(hash, digits: 16)))",
            [quote(line), partition.quote(event.seq)]
        )
    }

    private mutating func pushed(_ frame: Frame, _ view: View, _ line: HistoryLine) {
        guard let proven = view.proven else {
            result.findings.violation(.gap, "a frame was pushed where no subscription stood", [quote(line)])
            return
        }
        result.findings.fact(.gap)
        if frame.from > proven + 1 {
            result.findings.violation(
                .gap,
                "a frame was pushed that begins at seq \(frame.from), where \(proven + 1) was to follow",
                [quote(line)]
            )
        }
        view.proven = max(proven, frame.to)
    }

    private func seqs(of line: HistoryLine) throws(Fault) -> Set<Int64> {
        var seqs: Set<Int64> = []
        var reader = LineReader(file.bytes, try line.required(line.list, "events"))
        try reader.array { (reader) throws(Fault) in seqs.insert(try reader.event().seq) }
        return seqs
    }

    // MARK: Claims

    mutating func upto(_ line: HistoryLine) throws(Fault) {
        let number = try line.required(line.partition, "partition")
        let seq = try line.required(line.seq, "seq")
        for (key, view) in views {
            guard let proven = view.proven, view.partitionNumber == number, seq > proven else { continue }
            bound(seq, view, line)
            view.covered.insert(proven + 1...seq)
            view.proven = seq
            result.findings.fact(.gap)
            guard let partition = view.partition, !view.isFiltered, isJudgeable(proven + 1, partition),
                isJudgeable(seq, partition),
                let missing = partition.missing(view.number, in: proven + 1...seq)
            else { continue }
            result.findings.violation(
                .gap,
                "all of stream \(key.stream.string) up to seq \(seq) was said to be proven, and seq \(missing) had not "
                    + "been sent: the last was \(proven)",
                [quote(line), partition.quote(missing)]
            )
        }
    }

    mutating func reached(_ line: HistoryLine) throws(Fault) {
        let seq = try line.required(line.seq, "seq")
        let stream = try stream(line)
        told.insert(stream)
        if line.epoch == nil, seq < 0 {
            result.unreached[stream] = line.place.lowerBound
            return
        }
        result.unreached[stream] = nil
        let key = try key(line)
        let view = view(key)
        result.findings.fact(.gap)
        result.reached[stream] = (key.epoch, seq, line.place.lowerBound)
        guard let start = view.start else {
            if seq >= 0 {
                result.findings.violation(
                    .gap,
                    "seq \(seq) is shown as reached, and nothing of stream \(key.stream.string) was received",
                    [quote(line)]
                )
            }
            return
        }
        let covered = view.covered.contiguous(after: start)
        guard seq > max(covered, start) else { return }
        result.findings.violation(
            .gap,
            "seq \(seq) of stream \(key.stream.string) is shown as reached, and nothing proves seq \(covered + 1)",
            [quote(line), view.partition?.quote(covered + 1)]
        )
    }

    mutating func head(_ line: HistoryLine) throws(Fault) {
        let number = try line.required(line.partition, "partition")
        let seq = try line.required(line.head, "head")
        let of = Text(LineReader(file.bytes, line.place).decoded(try line.required(line.of, "of"))).string
        let epoch = line.epoch ?? epoch
        let place = "\(of) \(hex(epoch, digits: 16)) \(number)"
        result.findings.fact(.heads)
        if let last = nodeHeads[place], seq < last {
            result.findings.violation(
                .heads,
                "\(of) said that the head of partition \(number) is \(last), and then \(seq)",
                [quote(line)]
            )
        }
        nodeHeads[place] = seq
        guard let log = evidence.logs[epoch] else {
            return isUnknown(epoch)
        }
        guard log.partitions.indices.contains(Int(number)) else {
            return unjudged("a head of a partition that the epoch has not; correct what writes it")
        }
        guard seq > log.partitions[Int(number)].last, isJudgeable(seq, log.partitions[Int(number)]) else { return }
        result.findings.violation(
            .heads,
            "\(of) said that the head of partition \(number) is \(seq), and the log ends at "
                + "\(log.partitions[Int(number)].last)",
            [quote(line)]
        )
    }
}

extension LineReader {
    /// An event of a frame: `[seq, site, op, "hash"]`.
    struct Event {
        var seq: Int64 = -1
        var hash: UInt64 = 0
    }

    @inline(__always)
    fileprivate mutating func event() throws(Fault) -> Event {
        var event = Event()
        var count = 0
        try array { (reader) throws(Fault) in
            switch count {
            case 0: event.seq = try reader.integer()
            case 1, 2: _ = try reader.integer()
            case 3: event.hash = try reader.hex64()
            default: throw Fault("an event is not [seq, site, op, hash]")
            }
            count += 1
        }
        guard count == 4 else { throw Fault("an event is not [seq, site, op, hash]") }
        return event
    }
}
