import ReelClient
import ReelCore

@testable import ReelLog

/// The log behind all nodes, and what goes wrong with it.
final class SimulatedLog {
    /// In percent of the appends and reads.
    struct Faults {
        var fails = 0
        var failsButAppends = 0
        var twice = 0
        var withoutPlace = 0
        var slow = 0
        var tailBreaks = 0
        var boundsFail = 0
    }

    struct Record {
        var key: [UInt8]
        var value: [UInt8]
    }

    let epoch: Epoch
    let time: VirtualTime
    let lane: Int
    var faults = Faults()
    /// Appends are not taken up before.
    var silentUntilMs: Int64 = 0
    private(set) var partitions: [MemoryPartition]
    /// All that was ever appended, for the judges; nil: a hole.
    private(set) var records: [[Record?]]
    private var tails: [SimulatedTail] = []

    init(_ time: VirtualTime, partitions: Int, epoch: Epoch) {
        self.time = time
        self.epoch = epoch
        lane = time.addLane()
        self.partitions = Array(repeating: MemoryPartition(), count: partitions)
        records = Array(repeating: [], count: partitions)
    }

    func head(_ partition: Int) -> Seq { partitions[partition].end - 1 }

    func append(_ more: [LogAppend], to partition: Int) -> [Seq] {
        records[partition] += more.map { Record(key: $0.key, value: $0.value) }
        defer { ring(partition) }
        return partitions[partition].append(more)
    }

    func leaveHole(_ partition: Int) {
        records[partition].append(nil)
        partitions[partition].leaveHole()
        ring(partition)
    }

    func trim(_ partition: Int, before seq: Seq) { partitions[partition].trim(before: seq) }

    func follow(_ tail: SimulatedTail) {
        tails.removeAll { $0.sink == nil || !$0.process.isAlive }
        tails.append(tail)
        tail.wake()
    }

    private func ring(_ partition: Int) {
        for tail in tails where tail.partition == partition { tail.wake() }
    }

    func stop() {
        for tail in tails { tail.cancel() }
        tails = []
    }
}

/// A tail of one process.
final class SimulatedTail: LogTail, @unchecked Sendable {
    let log: SimulatedLog
    let process: SimulatedProcess
    let partition: Int
    private(set) var sink: (any LogSink)?
    private var next: Seq
    private var isAwake = false

    init(_ log: SimulatedLog, _ process: SimulatedProcess, _ partition: Int, from: Seq, _ sink: any LogSink) {
        self.log = log
        self.process = process
        self.partition = partition
        self.sink = sink
        next = from
    }

    func cancel() { sink = nil }

    func wake() {
        guard !isAwake, sink != nil else { return }
        isAwake = true
        process.after(process.pick(0...(process.chance(10) ? 800 : 10))) { [self] in deliver() }
    }

    private func deliver() {
        isAwake = false
        guard let sink else { return }
        if process.chance(log.faults.tailBreaks) {
            return end(LogError(.logUnavailable, "the simulated tail broke"))
        }
        do throws(LogError) {
            guard next <= log.partitions[partition].end else {
                throw .beyondTheEnd(next, last: log.head(partition))
            }
            let bytes = process.chance(50) ? 1 << 20 : Int(process.pick(1...2_000))
            let batch = try log.partitions[partition].batch(partition, from: next, to: largestInteger, bytes: bytes)
            guard !batch.seqs.isEmpty else { return }
            next = batch.seqs.upperBound
            sink.received(batch)
            if next < log.partitions[partition].end { wake() }
        } catch {
            end(error)
        }
    }

    private func end(_ error: LogError) {
        let sink = sink
        self.sink = nil
        sink?.failed(error)
    }
}

/// The log as one process reaches it: in order per partition, with delays.
final class LogHandle: EventLog, @unchecked Sendable {
    private let log: SimulatedLog
    private let process: SimulatedProcess
    private var appendedMs: [Int64]
    private var answeredMs: [Int64]

    init(_ log: SimulatedLog, _ process: SimulatedProcess) {
        self.log = log
        self.process = process
        appendedMs = Array(repeating: 0, count: log.partitions.count)
        answeredMs = appendedMs
    }

    var epoch: Epoch { log.epoch }
    var partitions: Int { log.partitions.count }

    func bounds(_ partition: Int) throws(LogError) -> LogBounds {
        if process.chance(log.faults.boundsFail) { throw LogError(.logUnavailable, "the simulated log is silent") }
        return log.partitions[partition].bounds
    }

    func append(
        _ records: [LogAppend],
        to partition: Int,
        done: @escaping @Sendable (Result<[Seq], LogError>) -> Void
    ) {
        let faults = log.faults
        let delay = process.chance(faults.slow) ? process.pick(500...9_000) : process.pick(0...20)
        let ms = max(process.nowMs + delay, log.silentUntilMs, appendedMs[partition])
        appendedMs[partition] = ms
        let fails = process.chance(faults.fails)
        let comesTwice = process.chance(faults.twice)
        let isUnsure = process.chance(faults.failsButAppends)
        let hasNoPlace = process.chance(faults.withoutPlace)
        let (echoMs, answerMs) = (process.pick(0...300), process.pick(0...20))
        if comesTwice { appendedMs[partition] += echoMs }
        let arrivesWhenKilled = process.chance(50)
        log.time.at(ms, log.lane) { [self] in
            guard process.isAlive || arrivesWhenKilled else { return }
            let failure = LogError(.logUnavailable, "the simulated log has not answered")
            if fails { return answer(partition, answerMs, .failure(failure), done) }
            let seqs = log.append(records, to: partition)
            if isUnsure { return answer(partition, answerMs, .failure(failure), done) }
            if hasNoPlace { return answer(partition, answerMs, .success(seqs.map { _ in .none }), done) }
            guard comesTwice else { return answer(partition, answerMs, .success(seqs), done) }
            log.time.at(ms + echoMs, log.lane) { [self] in
                let seqs = log.append(records, to: partition)
                answer(partition, answerMs, .success(seqs), done)
            }
        }
    }

    private func answer(
        _ partition: Int,
        _ afterMs: Int64,
        _ result: Result<[Seq], LogError>,
        _ done: @escaping @Sendable (Result<[Seq], LogError>) -> Void
    ) {
        let ms = max(process.nowMs + afterMs, answeredMs[partition])
        answeredMs[partition] = ms
        process.at(ms) { done(result) }
    }

    func tail(_ partition: Int, from: Seq, to sink: any LogSink) -> any LogTail {
        let tail = SimulatedTail(log, process, partition, from: from, sink)
        log.follow(tail)
        return tail
    }

    func read(_ partition: Int, from: Seq, to: Seq, bytes: Int) throws(LogError) -> RecordBatch {
        if process.chance(log.faults.boundsFail) { throw LogError(.logUnavailable, "the simulated log is silent") }
        return try log.partitions[partition].batch(partition, from: from, to: to, bytes: min(bytes, 4_000))
    }

    func announce(_ node: NodeAnnouncement) throws(LogError) {}
    func nodes() throws(LogError) -> [NodeAnnouncement] { [] }
    func close() {}
}
