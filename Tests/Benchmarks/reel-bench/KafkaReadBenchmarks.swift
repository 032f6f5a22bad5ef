import CKafkaFloor
import Dispatch
import Glibc
import ReelBase
import ReelCore
import ReelGateway
import ReelKafka
import ReelLab
import ReelLog
import ReelNet
import ReelNode
import Synchronization

/// Measures how fast a gateway reads a partition, up to the point where it would send the events to its clients.
enum KafkaTailBenchmark {
    private static let records = 1_000_000

    @Sendable static func run() async throws -> [Measured] {
        try await withFolder { folder in
            let stand = try KafkaStand(partitions: 1, in: folder)
            let end = try stand.fill(records)
            var (ours, raw): ([Double], [Double]) = ([], [])
            for isOurs in turns(5) {
                if isOurs {
                    ours.append(try await gateway(stand, upTo: end))
                } else {
                    raw.append(Double(records) / (try stand.consume(records)))
                }
            }
            return [
                Measured(
                    work: "tail of \(records) events of 200 B, real Kafka, to the gateway's fan-out point",
                    value: median(ours),
                    unit: "events/s",
                    peer: ("raw librdkafka", median(raw)),
                    goal: .atLeast(0.7)
                )
            ]
        }
    }

    private static func gateway(_ stand: KafkaStand, upTo end: Seq) async throws -> Double {
        let log = try stand.open()
        defer { log.close() }
        var settings = GatewaySettings()
        settings.node.listen = "127.0.0.1:0"
        settings.node.loops = 1
        settings.warmRecords = Int64(records)
        let gateway = try Gateway(log: log, settings: settings, logger: Logger { _ in })
        let rate: Result<Double, any Error>
        do {
            rate = .success(try await watch(try Questions(port: gateway.address.port), upTo: end))
        } catch {
            rate = .failure(error)
        }
        gateway.end.begin()
        gateway.end.begin()
        await gateway.waitUntilEnded()
        return try rate.get()
    }

    /// Returns the events per second between the first query at which the loop has passed on some records and the query
    /// at which it has passed on all. The loop answers after the records that it has passed on, so records that still
    /// wait do not count.
    private static func watch(_ questions: Questions, upTo end: Seq) async throws -> Double {
        let last = Int(end) - 1
        var first: (head: Int, at: ContinuousClock.Instant)?
        while true {
            let head = try await questions.head(of: "bench")
            if first == nil, head > last - records { first = (head, .now) }
            if let first, head >= last { return Double(head - first.head) / (ContinuousClock.now - first.at).seconds }
            // A query uses some of the measured time, so queries are frequent only near the end.
            let millis = head < last - records / 5 ? 50 : 5
            try await Task.sleep(for: .milliseconds(millis))
        }
    }
}

/// Measures reads of ranges of 1,024 old seqs, 16 at a time.
enum KafkaReadBenchmark {
    private static let span: Int32 = 1_024
    private static let atOnce = 16
    private static let each = 25

    @Sendable static func run() async throws -> [Measured] {
        try withFolder { folder in
            let stand = try KafkaStand(partitions: 1, in: folder)
            let end = try stand.fill(200_000)
            let log = try stand.open()
            defer { log.close() }
            _ = try ours(log, end)
            var (own, raw): ([Double], [Double]) = ([], [])
            for isOurs in turns(5) {
                if isOurs {
                    own.append(percentile(try ours(log, end)))
                } else {
                    raw.append(percentile(try bare(stand, end)))
                }
            }
            return [
                Measured(
                    work: "reading \(span) old seqs, \(atOnce) at once, real Kafka, p99",
                    value: median(own),
                    unit: "ms",
                    peer: ("raw librdkafka, 8 handles kept", median(raw)),
                    goal: .atMostAbove(20)
                )
            ]
        }
    }

    private static func percentile(_ micros: [Double]) -> Double {
        micros.sorted()[micros.count * 99 / 100] / 1_000
    }

    private static func bare(_ stand: KafkaStand, _ end: Seq) throws -> [Double] {
        var micros = [Double](repeating: 0, count: atOnce * each)
        let status = CStrings.lend(stand.configuration.settings(of: .reading)) { consumer in
            kafka_floor_reads(consumer, stand.topic, 0, end, span, Int32(atOnce), Int32(each), &micros)
        }
        guard status == 0 else { throw BenchmarkError("the bare C program could not read") }
        return micros
    }

    private static func ours(_ log: any EventLog, _ end: Seq) throws -> [Double] {
        let all = Mutex<(micros: [Double], error: LogError?)>(([], nil))
        DispatchQueue.concurrentPerform(iterations: atOnce) { reader in
            var generator = SeededGenerator(seed: UInt64(reader))
            for _ in 0..<each {
                let from = Seq(generator.next() % UInt64(end - Seq(span)))
                let start = ContinuousClock.now
                do throws(LogError) {
                    var next = from
                    while next < from + Seq(span) {
                        next = try log.read(0, from: next, to: from + Seq(span) - 1, bytes: 1 << 20).seqs.upperBound
                    }
                } catch {
                    all.withLock { $0.error = error }
                }
                let taken = (ContinuousClock.now - start).seconds * 1e6
                all.withLock { $0.micros.append(taken) }
            }
        }
        if let error = all.withLock({ $0.error }) { throw error }
        return all.withLock { $0.micros }
    }
}

extension KafkaStand {
    /// Opens the log in this process.
    func open() throws -> any EventLog {
        let store = try KafkaLogStore(configuration) { _, _, _ in }
        defer { store.close() }
        return try store.open(epoch)
    }

    /// Appends `count` events, and returns the seq after the last one.
    func fill(_ count: Int) throws -> Seq {
        let log = try open()
        defer { log.close() }
        try log.fill(BenchEvents.inserts(1_000) + BenchEvents.updates(count - 1_000, of: 1_000))
        return try log.bounds(0).last + 1
    }

    /// Returns the seconds in which the bare C program reads `count` records.
    func consume(_ count: Int) throws -> Double {
        let seconds = CStrings.lend(configuration.settings(of: .tail)) { consumer in
            kafka_floor_consume(consumer, topic, 0, 0, Int32(count))
        }
        guard seconds > 0 else { throw BenchmarkError("the bare C program could not read") }
        return seconds
    }
}

extension Duration {
    var seconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}
