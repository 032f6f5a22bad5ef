import ReelCore
import ReelLog
import Synchronization
import TestSupport
import Testing

extension LogRequirement {
    /// The requirements on tails and on reads of ranges.
    package static let reading: [LogRequirement] = [
        LogRequirement("a tail begins at any seq, goes on as the log grows, and leaves nothing out") { log in
            try await log.append("0", "1", "2")
            let sinks = (0...3).map { _ in CollectingSink() }
            for from in 0...3 { _ = log.tail(0, from: Seq(from), to: sinks[from]) }
            for i in 3..<200 { try await log.append("\(i)") }
            for from in 0...3 {
                try await eventually("tail from \(from)") { sinks[from].count == 200 - from }
                #expect(sinks[from].texts == (from..<200).map { "\($0)" })
                let batches = sinks[from].batches
                #expect(zip(batches, batches.dropFirst()).allSatisfy { $0.upperBound == $1.lowerBound })
            }
        },
        LogRequirement("a tail that waits is woken by the next append") { log in
            let sink = CollectingSink()
            _ = log.tail(2, from: 0, to: sink)
            for i in 0..<20 {
                try await log.append("\(i)", to: 2)
                try await eventually("record \(i)") { sink.count == i + 1 }
            }
        },
        LogRequirement("a tail from beyond the end ends with ahead_of_log, which names the end") { log in
            try await log.append("a", "b")
            let sink = CollectingSink()
            _ = log.tail(0, from: 3, to: sink)
            try await eventually("an error") { sink.error != nil }
            #expect(sink.error?.code == .aheadOfLog)
            #expect(sink.error?.seq == 1)
        },
        LogRequirement("nothing arrives once cancel has returned") { log in
            for _ in 0..<20 {
                let sink = CollectingSink()
                let tail = log.tail(0, from: 0, to: sink)
                log.append([LogAppend("s", "x")], to: 0) { _ in }
                tail.cancel()
                let count = sink.count
                try await log.append("y")
                #expect(sink.count == count)
                tail.cancel()
            }
        },
        LogRequirement("a sink may cancel its own tail") { log in
            let tail = Mutex<(any LogTail)?>(nil)
            let sink = CollectingSink { _ in tail.withLock { $0?.cancel() } }
            let running = log.tail(0, from: 0, to: sink)
            tail.withLock { $0 = running }
            try await log.append("a")
            try await eventually("a batch") { sink.count == 1 }
            let other = CollectingSink()
            _ = log.tail(0, from: 0, to: other)
            try await log.append("b")
            try await eventually("the other tail") { other.count == 2 }
            #expect(sink.count == 1)
        },
        LogRequirement("a read ends where it was told, at its bytes, or at the end, and says how far it got") { log in
            for i in 0..<10 { try await log.append((0..<10).map { LogAppend("s", "\(i * 10 + $0)") }) }
            for (from, to) in [(0, 99), (0, 0), (7, 13), (19, 20), (99, 99), (50, 200)] as [(Seq, Seq)] {
                let batch = try log.read(0, from: from, to: to, bytes: 1 << 20)
                #expect(batch.seqs == from..<min(to, 99) + 1)
                #expect(batch.seen.map(\.text) == (from...min(to, 99)).map { "\($0)" })
                #expect(batch.partition == 0)
            }
            for (from, to) in [(100, 200), (150, 151), (5, 4), (9, -1)] as [(Seq, Seq)] {
                let batch = try log.read(0, from: from, to: to, bytes: 1 << 20)
                #expect(batch.seqs.isEmpty && batch.entries.isEmpty)
            }
            let one = try log.read(0, from: 42, to: 99, bytes: 0)
            #expect(one.seqs == 42..<43)
            var next: Seq = 0
            while next < 100 {
                let batch = try log.read(0, from: next, to: 99, bytes: 20)
                #expect(batch.seqs.lowerBound == next && !batch.seqs.isEmpty)
                next = batch.seqs.upperBound
            }
        },
        LogRequirement("a compact batch has the same records, and holds little more than they have") { log in
            let words = ["", "a", String(repeating: "b", count: 100_000)]
            try await log.append((0..<30).map { LogAppend("k\($0 % 7)", words[$0 % 3]) })
            for (from, to, bytes) in [(0, 29, 1 << 24), (4, 20, 150_000), (1, 1, 1), (0, 0, 1), (30, 40, 1)] {
                var whole: RecordBatch? = try log.read(0, from: Seq(from), to: Seq(to), bytes: bytes)
                let (seqs, seen) = (whole?.seqs, whole?.seen.map { Seen(seq: $0.seq, key: $0.key, value: $0.value) })
                let compact = try #require(whole).compact()
                whole = nil
                #expect(compact.seqs == seqs)
                #expect(compact.seen.map { Seen(seq: $0.seq, key: $0.key, value: $0.value) } == seen)
                #expect(compact.heldBytes <= 2 * compact.entries.reduce(0) { $0 + $1.byteCount })
                #expect(compact.compact() === compact)
            }
        },
        LogRequirement("a read below the first seq is truncated, never a part of the answer") { log in
            try await log.append("a")
            let error = #expect(throws: LogError.self) { try log.read(0, from: -1, to: 5, bytes: 100) }
            #expect(error?.code == .truncated)
            let sink = CollectingSink()
            _ = log.tail(0, from: -1, to: sink)
            try await eventually("an error") { sink.error?.code == .truncated }
        },
        LogRequirement("an unknown partition is an error, not a trap") { log in
            for partition in [-1, 4, .max, .min] {
                #expect(throws: LogError.self) { try log.bounds(partition) }
                #expect(throws: LogError.self) { try log.read(partition, from: 0, to: 1, bytes: 1) }
                await #expect(throws: LogError.self) { try await log.append("a", to: partition) }
                let sink = CollectingSink()
                _ = log.tail(partition, from: 0, to: sink)
                try await eventually("an error") { sink.error != nil }
            }
        },
        LogRequirement("many partitions, many tails", partitions: 32) { log in
            let sinks = (0..<32).map { _ in CollectingSink() }
            for partition in 0..<32 { _ = log.tail(partition, from: 0, to: sinks[partition]) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for partition in 0..<32 {
                    group.addTask {
                        for i in 0..<5 { try await log.append("\(partition).\(i)", to: partition) }
                    }
                }
                try await group.waitForAll()
            }
            for partition in 0..<32 {
                try await eventually("partition \(partition)") { sinks[partition].count == 5 }
                #expect(sinks[partition].texts == (0..<5).map { "\(partition).\($0)" })
            }
        },
    ]
}
