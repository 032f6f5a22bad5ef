import EventLogConformance
import ReelCore
import ReelLog
import ReelNode
import Synchronization
import Testing

@testable import ReelGateway

/// What a reader makes of the log's records, the first time and when it knows them.
@Suite struct LogReaderTests {
    private let streams = [StreamName("todo")!, StreamName("note")!]
    private let site = Site(high: 1, low: 1)

    /// Events of two streams, and here and there what has no effect.
    private func fill(_ log: MemoryLog, _ count: Int64, with generator: inout Seeded) async throws {
        let records = (0..<count).map { number in
            let stream = streams[number % 100 < 50 ? 0 : Int.random(in: 0...1, using: &generator)]
            let isVoid = Int.random(in: 0..<20, using: &generator) == 0 && number > count / 2
            let value = isVoid ? Array("{}".utf8) : Batches.value(site, Op(number), "x\(number)", base: number - 1)
            return LogAppend(key: stream.key, value: value)
        }
        try await withCheckedThrowingContinuation { continuation in
            log.append(records, to: 0) { result in continuation.resume(with: result.map { _ in }) }
        }
    }

    private func readAll(_ log: MemoryLog, _ stream: StreamName, to last: Seq, _ sound: SoundSeqs) throws
        -> [EventsChunk]
    {
        let reader = LogReader(
            stream: stream,
            filter: nil,
            partition: 0,
            partitions: 1,
            end: largestInteger,
            sound: sound
        )
        var chunks: [EventsChunk] = []
        while chunks.last.map({ $0.to < last }) ?? true {
            let from = (chunks.last?.to ?? -1) + 1
            chunks.append(try reader.read(log, from: from, to: last, bytes: 2_000, events: .max).get())
        }
        return chunks
    }

    @Test func whatWasReadOnceIsReadTheSameAgain() async throws {
        let seed = Seeded.seed
        var generator = Seeded(seed)
        let log = try MemoryLog(partitions: 1)
        try await fill(log, 400, with: &generator)
        let sound = SoundSeqs(partitions: 1)
        for stream in streams {
            let first = try readAll(log, stream, to: 399, SoundSeqs(partitions: 1))
            #expect(try readAll(log, stream, to: 399, sound) == first, "seed \(seed)")
            #expect(try readAll(log, stream, to: 399, sound) == first, "seed \(seed)")
        }
        #expect(sound.contains(0..<20, of: 0), "all are events of one stream")
        #expect(!sound.contains(0..<400, of: 0), "some have no effect")
    }

    @Test func whatIsKnownOfRecordsIsBounded() {
        let sound = SoundSeqs(partitions: 2)
        for seq in stride(from: 0, to: 10_000, by: 2) as StrideTo<Seq> { sound.add(seq..<seq + 1, of: 1) }
        #expect(!sound.contains(0..<1, of: 1), "it was let go of")
        #expect(sound.contains(9_998..<9_999, of: 1))
        #expect(!sound.contains(9_998..<9_999, of: 0))
    }
}
