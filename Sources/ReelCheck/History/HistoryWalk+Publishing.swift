// Checks the lines of a publisher.
extension HistoryWalk {
    mutating func sent(_ line: HistoryLine) throws(Fault) {
        let site = try site(try line.required(line.site, "site"))
        let key = SiteKey(stream: try stream(line), site: site)
        let ops = try line.required(line.ops, "ops")
        mustEnd = true
        result.sent[key, default: Coverage()].insert(ops)
        var sent = handedOver[key] ?? (-1, [])
        if ops.lowerBound <= sent.last { sent.again.append(ops.lowerBound) }
        sent.last = max(sent.last, ops.upperBound)
        handedOver[key] = sent
    }

    mutating func acked(_ line: HistoryLine) throws(Fault) {
        let stream = StreamKey(epoch: try line.required(line.epoch, "epoch"), stream: try stream(line))
        let partition = partition(stream)
        var highest: Int64 = -1
        var reader = LineReader(file.bytes, try line.required(line.list, "acks"))
        try reader.array { (reader) throws(Fault) in
            var numbers: (Int64, Int64, Int64) = (-1, -1, -1)
            var count = 0
            try reader.array { (reader) throws(Fault) in
                let number = try reader.integer()
                switch count {
                case 0: numbers.0 = number
                case 1: numbers.1 = number
                default: numbers.2 = number
                }
                count += 1
            }
            guard count == 3 else { throw Fault("an ack is not [site, op, seq]") }
            let key = SiteKey(stream: stream.stream, site: try site(numbers.0))
            acked(key, stream, op: numbers.1, seq: numbers.2, partition, line)
            if partition?.isPrintedAsLost(numbers.2) != true { highest = max(highest, numbers.2) }
        }
        guard highest >= 0 else { return }
        result.ackedHeads[stream, default: []].append((wall(line), highest))
    }

    /// Reads a nack. An event that is refused permanently needs no ack.
    mutating func nacked(_ line: HistoryLine) throws(Fault) {
        let key = SiteKey(stream: try stream(line), site: try site(try line.required(line.site, "site")))
        let op = try line.required(line.op, "op")
        if line.retry == nil { settled[key, default: Coverage()].insert(op...op) }
    }

    /// True if acks may restart at this op, because the op was sent again. Each restart is used once.
    private mutating func isOfAnotherRound(_ op: Int64, of key: SiteKey) -> Bool {
        guard let round = handedOver[key]?.again.firstIndex(where: { $0 <= op }) else { return false }
        handedOver[key]?.again.remove(at: round)
        return true
    }

    private mutating func acked(
        _ key: SiteKey,
        _ stream: StreamKey,
        op: Int64,
        seq: Int64,
        _ partition: LoggedPartition?,
        _ line: HistoryLine
    ) {
        result.findings.fact(.siteOrder)
        if let last = lastAcked[key], op <= last, !isOfAnotherRound(op, of: key) {
            result.findings.violation(
                .siteOrder,
                "op \(op) of site \(key.site.text.string) was acked after op \(last) on the same connection",
                [quote(line)]
            )
        }
        lastAcked[key] = op
        settled[key, default: Coverage()].insert(op...op)
        if let sent = result.sent[key], let highest = sent.last, op > highest {
            result.findings.violation(
                .phantom,
                "op \(op) of site \(key.site.text.string) was acked, and the highest handed over was \(highest)",
                [quote(line)]
            )
        } else if result.sent[key]?.contains(op) != true {
            unjudged("an ack of what no line of sent hands over: lines are missing; record the run again")
        }
        result.findings.fact(.phantom)
        let ackKey = AckKey(epoch: stream.epoch, key: key)
        if op > result.acked[ackKey]?.op ?? -1 {
            result.acked[ackKey] = (op, seq, line.place.lowerBound)
        }
        guard let partition else { return }
        let mayBeLost = partition.isPrintedAsLost(seq)
        if mayBeLost { result.printedAsLost += 1 }
        guard isJudgeable(seq, partition) else { return }
        result.findings.fact(.ackedLoss)
        if let record = partition[seq] {
            if mayBeLost || record.site == key.site && record.op == op && record.stream == key.stream { return }
            let found =
                record.site.map { "op \(record.op) of site \($0.text.string), stream \(record.stream?.string ?? "")" }
                ?? "no event"
            result.findings.violation(
                .ackedLoss,
                "op \(op) of site \(key.site.text.string), stream \(key.stream.string), was acked at seq \(seq) of "
                    + "partition \(partition.number), where the log has \(found)",
                [quote(line), partition.quote(seq)]
            )
        } else {
            result.findings.violation(
                .ackedLoss,
                "op \(op) of site \(key.site.text.string), stream \(key.stream.string), was acked at seq \(seq), and "
                    + "the log of partition \(partition.number) ends at \(partition.last)",
                [quote(line), partition.quote(partition.last)]
            )
        }
    }
}
