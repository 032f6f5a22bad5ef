import ReelCore
import ReelLog
import Synchronization
import TestSupport
import Testing

extension LogRequirement {
    /// The requirements on appends, their answers, and the end of a log.
    package static let appending: [LogRequirement] = [
        LogRequirement("an empty log has empty bounds, its partitions and one epoch", partitions: 3) { log in
            #expect(log.partitions == 3)
            #expect(log.epoch == log.epoch)
            for partition in 0..<3 { #expect(try log.bounds(partition) == .empty) }
            let batch = try log.read(0, from: 0, to: 10, bytes: 1000)
            #expect(batch.seqs.isEmpty && batch.entries.isEmpty)
        },
        LogRequirement("seqs are given from 0 on without a gap, each partition for itself") { log in
            let first = try await log.append("a", "b")
            #expect(first == [0, 1])
            #expect(try await log.append("c") == [2])
            #expect(try await log.append("x", to: 3) == [0])
            #expect(try log.bounds(0) == LogBounds(first: 0, last: 2))
            #expect(try log.bounds(1) == .empty)
            #expect(try log.bounds(3) == LogBounds(first: 0, last: 0))
        },
        LogRequirement("what is read is what was appended: key, value, witness") { log in
            let odd = [UInt8](0...255)
            let records = [
                LogAppend("todo", #"{"a":1}"#),
                LogAppend("~reel", "", witness: Witness(seq: 0, hash: .max)),
                LogAppend(key: odd, value: odd + odd, witness: Witness(seq: largestInteger, hash: 1)),
                LogAppend("", ""),
            ]
            try await log.append(records)
            let seen = try log.read(0, from: 0, to: 3, bytes: 1 << 20).seen
            #expect(seen.map(\.seq) == [0, 1, 2, 3])
            #expect(seen.map(\.value) == records.map(\.value))
            #expect(seen.map { Array($0.key.utf8) }[0] == records[0].key)
            #expect(seen.map(\.witness) == records.map(\.witness))
        },
        LogRequirement("appends of one caller stay in order, though nobody waits for an answer") { log in
            let answers = Mutex<[[Seq]]>([])
            for i in 0..<500 {
                log.append([LogAppend("s", "\(i)")], to: 1) { result in
                    answers.withLock { $0.append((try? result.get()) ?? []) }
                }
            }
            try await eventually("500 answers") { answers.withLock { $0.count == 500 } }
            #expect(answers.withLock { $0.flatMap(\.self) } == Array(0..<500))
            let seen = try log.read(1, from: 0, to: 499, bytes: 1 << 20).seen
            #expect(seen.map(\.text) == (0..<500).map { "\($0)" })
        },
        LogRequirement("many callers at once: each keeps its order, no seq is given twice, none is left out") { log in
            let callers = 8
            let each = 50 * effort
            try await withThrowingTaskGroup(of: [Seq].self) { group in
                for caller in 0..<callers {
                    group.addTask {
                        var seqs: [Seq] = []
                        for i in 0..<each {
                            seqs += try await log.append([LogAppend("c\(caller)", "\(i)")], to: caller % 2)
                        }
                        #expect(seqs == seqs.sorted())
                        return seqs
                    }
                }
                var all: [Seq] = []
                for try await seqs in group { all += seqs }
                #expect(all.sorted() == (0..<callers * each).map { Seq($0 / 2) })
            }
            for partition in 0..<2 {
                let seen = try log.read(partition, from: 0, to: .max - 1, bytes: 1 << 24).seen
                #expect(seen.map(\.seq) == Array(0..<Seq(callers * each / 2)))
                for (_, records) in Dictionary(grouping: seen, by: \.key) {
                    #expect(records.map(\.text) == (0..<each).map { "\($0)" })
                }
            }
        },
        LogRequirement("records of 1 MiB beside small ones, and a call without records") { log in
            let big = [UInt8](repeating: 0x61, count: 1 << 20)
            let sink = CollectingSink()
            _ = log.tail(0, from: 0, to: sink)
            #expect(try await log.append([LogAppend]()) == [])
            let records = [LogAppend("s", "a"), LogAppend(key: [0x73], value: big), LogAppend("s", "b")]
            #expect(try await log.append(records + records) == [0, 1, 2, 3, 4, 5])
            try await eventually("all six") { sink.count == 6 }
            #expect(sink.records.map(\.value.count) == [1, 1 << 20, 1, 1, 1 << 20, 1])
            #expect(try log.read(0, from: 1, to: 1, bytes: 1).seen.first?.value == big)
        },
        LogRequirement("close answers what was handed over, ends tails, and later calls are errors") { log in
            let sink = CollectingSink()
            _ = log.tail(0, from: 0, to: sink)
            let answered = Mutex(0)
            for i in 0..<100 {
                log.append([LogAppend("s", "\(i)")], to: 0) { _ in answered.withLock { $0 += 1 } }
            }
            log.close()
            #expect(answered.withLock { $0 } == 100)
            let count = sink.count
            let error = await #expect(throws: LogError.self) { try await log.append("late") }
            #expect(error?.code == .logUnavailable)
            #expect(throws: LogError.self) { try log.bounds(0) }
            #expect(throws: LogError.self) { try log.read(0, from: 0, to: 1, bytes: 1) }
            #expect(sink.count == count)
            log.close()
        },
    ]
}
