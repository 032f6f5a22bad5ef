import EventLogConformance
import ReelCore
import ReelLog
import Synchronization
import TestSupport
import Testing

@testable import ReelKafka

@Suite(.timeLimit(.minutes(15))) struct TailDeliveryTests {
    @Test("a tail receives its batches in order from any thread") func deliversInOrder() throws {
        var random = SeededNumbers(TestSeed.value)
        for _ in 0..<20 * effort { try deliverSome(&random) }
    }

    private func deliverSome(_ random: inout SeededNumbers) throws {
        let delivery = try TailDelivery()
        let sinks = (0..<3).map { _ in Sink() }
        let tails = sinks.enumerated().map { TailHandle(partition: $0, from: 0, sink: $1) }
        var next = [Seq](repeating: 0, count: tails.count)
        for _ in 0..<500 {
            let tail = Int.random(in: 0..<tails.count, using: &random)
            let isMoreThere = Int.random(in: 0..<10, using: &random) < 7
            delivery.deliver(batch(tail, next[tail]), to: tails[tail], isMoreThere: isMoreThere)
            next[tail] += 1
            if Int.random(in: 0..<50, using: &random) == 0 {
                delivery.finish()
                #expect(tails.map(\.next) == next)
            }
        }
        delivery.close()
        for (sink, next) in zip(sinks, next) { #expect(sink.seqs == Array(0..<next)) }
    }

    @Test("a tail receives nothing after a cancel") func stopsAfterCancel() throws {
        let delivery = try TailDelivery()
        let sink = Sink()
        let tail = TailHandle(partition: 0, from: 0, sink: sink)
        sink.act = { if $0 == 1 { tail.cancel() } }
        for seq in 0..<8 as Range<Seq> { delivery.deliver(batch(0, seq), to: tail, isMoreThere: true) }
        delivery.close()
        #expect(tail.hasEnded)
        #expect(sink.seqs == [0, 1])
    }

    private func batch(_ partition: Int, _ seq: Seq) -> RecordBatch {
        RecordBatch(partition: partition, empty: seq..<seq + 1)
    }

    private final class Sink: LogSink, @unchecked Sendable {
        private let all = Mutex<[Seq]>([])
        /// The action for each seq. It must be set before the first batch.
        var act: (Seq) -> Void = { _ in }

        var seqs: [Seq] { all.withLock { $0 } }

        func received(_ batch: RecordBatch) {
            all.withLock { $0.append(batch.seqs.lowerBound) }
            act(batch.seqs.lowerBound)
        }

        func failed(_ error: LogError) {}
    }
}
