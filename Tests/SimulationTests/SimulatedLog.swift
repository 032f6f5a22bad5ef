import ReelClient
import ReelCore

@testable import ReelLog

/// The log of all nodes, and its faults.
final class SimulatedLog {
    /// Probabilities of faults, in percent of the appends and reads.
    struct Faults {
        var fails = 0
        var failsButAppends = 0
        var twice = 0
        var withoutPlace = 0
        /// The log reports records as durable and does not have them.
        var lost = 0
        var slow = 0
        var tailBreaks = 0
        var boundsFail = 0
    }

    struct Record {
        var key: [UInt8]
        var value: [UInt8]
    }

    let epoch: Epoch
    /// The number of logs that were current before this one.
    let number: Int
    let time: VirtualTime
    let lane: Int
    var faults = Faults()
    /// The time before which the log starts no append.
    var silentUntilMs: Int64 = 0
    private(set) var partitions: [MemoryPartition]
    /// All records ever appended, for the checker; nil is a hole.
    private(set) var records: [[Record?]]
    /// The seqs of records that are no events, by partition.
    var litter: [Set<Seq>]
    /// The seq at which the epoch has ended, by partition.
    private var ends: [Seq?]
    /// The seq at which the state of the previous epoch ends, by partition.
    private var opens: [Seq?]
    private var tails: [SimulatedTail] = []

    init(_ time: VirtualTime, number: Int, partitions: Int, epoch: Epoch) {
        self.time = time
        self.number = number
        self.epoch = epoch
        lane = time.addLane()
        self.partitions = Array(repeating: MemoryPartition(), count: partitions)
        records = Array(repeating: [], count: partitions)
        litter = Array(repeating: [], count: partitions)
        ends = Array(repeating: nil, count: partitions)
        opens = ends
    }

    func head(_ partition: Int) -> Seq { partitions[partition].end - 1 }

    func append(_ more: [LogAppend], to partition: Int) -> [Seq] {
        for record in more {
            if StreamName.barrierKey.utf8.elementsEqual(record.key) {
                let seq = Seq(records[partition].count)
                switch record.value.withUnsafeBytes({ Barrier.read($0) }) {
                case .known(.end): ends[partition] = ends[partition] ?? seq
                case .known(.open): opens[partition] = opens[partition] ?? seq
                default: break
                }
            }
            records[partition].append(Record(key: record.key, value: record.value))
        }
        defer { ring(partition) }
        return partitions[partition].append(more)
    }

    /// True if no frame may prove this seq, because the state of the previous epoch is there.
    func isSeed(_ seq: Seq, of partition: Int) -> Bool { number > 0 && seq < opens[partition] ?? .max }

    /// Returns the value that the stream's clients get at this seq, if any.
    func delivered(_ seq: Seq, of partition: Int, in stream: StreamName) -> [UInt8]? {
        guard let record = records[partition][Int(seq)], seq <= ends[partition] ?? .max else { return nil }
        let isOurs = record.key == stream.key && !litter[partition].contains(seq)
        return isOurs || StreamName.barrierKey.utf8.elementsEqual(record.key) ? record.value : nil
    }

    func leaveHole(_ partition: Int) {
        records[partition].append(nil)
        partitions[partition].leaveHole()
        ring(partition)
    }

    /// Trims the partition, at most up to the end of its epoch. Without that end, readers could not
    /// tell that later records are void.
    func trim(_ partition: Int, before seq: Seq) {
        partitions[partition].trim(before: min(seq, ends[partition] ?? .max))
    }

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

/// The log from the view of one process: in order per partition, with delays.
final class LogHandle: EventLog, @unchecked Sendable {
    private let log: SimulatedLog
    private let process: SimulatedProcess
    private let isPatient: Bool
    private var appendedMs: [Int64]
    private var answeredMs: [Int64]

    /// Creates the handle.
    ///
    /// - Parameter isPatient: True if each call returns only when its work is done.
    init(_ log: SimulatedLog, _ process: SimulatedProcess, isPatient: Bool = false) {
        self.log = log
        self.process = process
        self.isPatient = isPatient
        appendedMs = Array(repeating: 0, count: log.partitions.count)
        answeredMs = appendedMs
    }

    var epoch: Epoch { log.epoch }
    var partitions: Int { log.partitions.count }

    func bounds(_ partition: Int) throws(LogError) -> LogBounds {
        if !isPatient, process.chance(log.faults.boundsFail) {
            throw LogError(.logUnavailable, "the simulated log is silent")
        }
        return log.partitions[partition].bounds
    }

    func append(
        _ records: [LogAppend],
        to partition: Int,
        done: @escaping @Sendable (Result<[Seq], LogError>) -> Void
    ) {
        if isPatient { return done(.success(log.append(records, to: partition))) }
        let faults = log.faults
        let delay = process.chance(faults.slow) ? process.pick(500...9_000) : process.pick(0...20)
        let ms = max(process.nowMs + delay, log.silentUntilMs, appendedMs[partition])
        appendedMs[partition] = ms
        let fails = process.chance(faults.fails)
        let comesTwice = process.chance(faults.twice)
        let isUnsure = process.chance(faults.failsButAppends)
        let hasNoPlace = process.chance(faults.withoutPlace)
        let isLost = process.chance(faults.lost)
        let (echoMs, answerMs) = (process.pick(0...300), process.pick(0...20))
        if comesTwice { appendedMs[partition] += echoMs }
        let arrivesWhenKilled = process.chance(50)
        log.time.at(ms, log.lane) { [self] in
            guard process.isAlive || arrivesWhenKilled else { return }
            let failure = LogError(.logUnavailable, "the simulated log has not answered")
            if fails { return answer(partition, answerMs, .failure(failure), done) }
            if isLost { return answer(partition, answerMs, .success(records.map { _ in .none }), done) }
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
        if !isPatient, process.chance(log.faults.boundsFail) {
            throw LogError(.logUnavailable, "the simulated log is silent")
        }
        return try log.partitions[partition].batch(partition, from: from, to: to, bytes: min(bytes, 4_000))
    }

    func announce(_ node: NodeAnnouncement) throws(LogError) {}
    func nodes() throws(LogError) -> [NodeAnnouncement] { [] }
    func close() {}
}
