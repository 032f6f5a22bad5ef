import ReelCore
import ReelLog
import Testing

extension MemoryLog {
    /// Returns a log of one partition whose witnesses let a starting gateway keep few records. Every `distance`-th
    /// event belongs to one of the streams, in turn; the others belong to the stream `busy`.
    static func sparse(
        _ count: Int,
        _ streams: [StreamName],
        every distance: Int,
        _ text: String = "x"
    ) async throws -> MemoryLog {
        let log = try MemoryLog(partitions: 1)
        let (site, busy) = (Site(high: 1, low: 1), StreamName("busy")!)
        var witness: Witness?
        let records = (0..<count).map { index in
            let isSparse = index % distance == distance / 2
            let stream = isSparse ? streams[index / distance % streams.count] : busy
            let value = Batches.value(site, Op(index), text, base: Seq(index) - 1)
            defer { witness = Witness(seq: Seq(index), hash: FNV1a.record(stream, value)) }
            return LogAppend(key: stream.key, value: value, witness: witness)
        }
        let _: Void = try await withCheckedThrowingContinuation { continuation in
            log.append(records, to: 0) { continuation.resume(with: $0.map { _ in () }) }
        }
        return log
    }
}

extension TestSocket {
    /// Returns the seqs of the events of these streams, which the socket subscribes to. Returns once all
    /// streams are proven up to the head.
    func events(of streams: [StreamName], to head: Seq) async throws -> [StreamName: [Seq]] {
        var proven: [StreamName: Seq] = [:]
        var seqs: [StreamName: [Seq]] = [:]
        while proven.count < streams.count || proven.values.contains(where: { $0 < head }) {
            let frame = try await next { _ in true }
            switch frame.body {
            case .subscribed(let subscribed): proven[subscribed.stream] = subscribed.after
            case .events(let part):
                #expect(part.from == (proven[part.stream] ?? -2) + 1)
                proven[part.stream] = part.to
                seqs[part.stream, default: []] += part.events.map(\.seq)
            case .upto(_, let seq): for stream in proven.keys { proven[stream] = max(proven[stream] ?? -1, seq) }
            default: Issue.record("found \(frame)")
            }
        }
        return seqs
    }
}
