import Foundation
import ReelCore
import ReelLog
import Synchronization
import Testing

/// What every log does, whatever lies behind it.
@Suite(.timeLimit(.minutes(5)))
struct EventLogConformance {
    static let kinds = LogKind.allCases

    @Test("an empty log has empty bounds, its partitions and one epoch", arguments: kinds)
    func empty(_ kind: LogKind) async throws {
        try await kind.withLog(partitions: 3) { log in
            #expect(log.partitions == 3)
            #expect(log.epoch == log.epoch)
            for partition in 0..<3 { #expect(try log.bounds(partition) == .empty) }
            let batch = try log.read(0, from: 0, to: 10, bytes: 1000)
            #expect(batch.seqs.isEmpty && batch.entries.isEmpty)
        }
    }

    @Test("seqs are given from 0 on without a gap, each partition for itself", arguments: kinds)
    func seqs(_ kind: LogKind) async throws {
        try await kind.withLog { log in
            let first = try await log.append("a", "b")
            #expect(first == [0, 1])
            #expect(try await log.append("c") == [2])
            #expect(try await log.append("x", to: 3) == [0])
            #expect(try log.bounds(0) == LogBounds(first: 0, last: 2))
            #expect(try log.bounds(1) == .empty)
            #expect(try log.bounds(3) == LogBounds(first: 0, last: 0))
        }
    }

    @Test("what is read is what was appended: key, value, witness", arguments: kinds)
    func roundTrip(_ kind: LogKind) async throws {
        try await kind.withLog { log in
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
        }
    }

    @Test("appends of one caller stay in order, though nobody waits for an answer", arguments: kinds)
    func order(_ kind: LogKind) async throws {
        try await kind.withLog { log in
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
        }
    }

    @Test("many callers at once: each keeps its order, no seq is given twice, none is left out", arguments: kinds)
    func concurrentAppends(_ kind: LogKind) async throws {
        try await kind.withLog { log in
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
        }
    }

    @Test("a tail begins at any seq, goes on as the log grows, and leaves nothing out", arguments: kinds)
    func tails(_ kind: LogKind) async throws {
        try await kind.withLog { log in
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
        }
    }

    @Test("a tail that waits is woken by the next append", arguments: kinds)
    func wakes(_ kind: LogKind) async throws {
        try await kind.withLog { log in
            let sink = CollectingSink()
            _ = log.tail(2, from: 0, to: sink)
            for i in 0..<20 {
                try await log.append("\(i)", to: 2)
                try await eventually("record \(i)", seconds: 5) { sink.count == i + 1 }
            }
        }
    }

    @Test("a tail from beyond the end ends with ahead_of_log, which names the end", arguments: kinds)
    func beyondTheEnd(_ kind: LogKind) async throws {
        try await kind.withLog { log in
            try await log.append("a", "b")
            let sink = CollectingSink()
            _ = log.tail(0, from: 3, to: sink)
            try await eventually("an error") { sink.error != nil }
            #expect(sink.error?.code == .aheadOfLog)
            #expect(sink.error?.seq == 1)
        }
    }

    @Test("nothing arrives once cancel has returned", arguments: kinds)
    func cancel(_ kind: LogKind) async throws {
        try await kind.withLog { log in
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
        }
    }

    @Test("a sink may cancel its own tail", arguments: kinds)
    func cancelInside(_ kind: LogKind) async throws {
        try await kind.withLog { log in
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
        }
    }

    @Test("a read ends where it was told, at its bytes, or at the end, and says how far it got", arguments: kinds)
    func reads(_ kind: LogKind) async throws {
        try await kind.withLog { log in
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
        }
    }

    @Test("a read below the first seq is truncated, never a part of the answer", arguments: kinds)
    func negative(_ kind: LogKind) async throws {
        try await kind.withLog { log in
            try await log.append("a")
            let error = #expect(throws: LogError.self) { try log.read(0, from: -1, to: 5, bytes: 100) }
            #expect(error?.code == .truncated)
            let sink = CollectingSink()
            _ = log.tail(0, from: -1, to: sink)
            try await eventually("an error") { sink.error?.code == .truncated }
        }
    }

    @Test("an unknown partition is an error, not a trap", arguments: kinds)
    func noPartition(_ kind: LogKind) async throws {
        try await kind.withLog { log in
            for partition in [-1, 4, .max, .min] {
                #expect(throws: LogError.self) { try log.bounds(partition) }
                #expect(throws: LogError.self) { try log.read(partition, from: 0, to: 1, bytes: 1) }
                await #expect(throws: LogError.self) { try await log.append("a", to: partition) }
                let sink = CollectingSink()
                _ = log.tail(partition, from: 0, to: sink)
                try await eventually("an error") { sink.error != nil }
            }
        }
    }

    @Test("records of 1 MiB beside small ones, and a call without records", arguments: kinds)
    func bigRecords(_ kind: LogKind) async throws {
        try await kind.withLog { log in
            let big = [UInt8](repeating: 0x61, count: 1 << 20)
            let sink = CollectingSink()
            _ = log.tail(0, from: 0, to: sink)
            #expect(try await log.append([LogAppend]()) == [])
            let records = [LogAppend("s", "a"), LogAppend(key: [0x73], value: big), LogAppend("s", "b")]
            #expect(try await log.append(records + records) == [0, 1, 2, 3, 4, 5])
            try await eventually("all six") { sink.count == 6 }
            #expect(sink.records.map(\.value.count) == [1, 1 << 20, 1, 1, 1 << 20, 1])
            #expect(try log.read(0, from: 1, to: 1, bytes: 1).seen.first?.value == big)
        }
    }

    @Test("many partitions, many tails", arguments: kinds)
    func manyPartitions(_ kind: LogKind) async throws {
        try await kind.withLog(partitions: 32) { log in
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
        }
    }

    @Test("close answers what was handed over, ends tails, and later calls are errors", arguments: kinds)
    func closing(_ kind: LogKind) async throws {
        try await kind.withLog { log in
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
        }
    }

    @Test(
        "nodes announce themselves, the latest word counts, and ten minutes later they are forgotten",
        arguments: kinds
    )
    func announcements(_ kind: LogKind) async throws {
        try await kind.withLog { log in
            let now = Int64(Date.now.timeIntervalSince1970 * 1000)
            var node = NodeAnnouncement(
                id: "n1",
                role: "gateway",
                url: "http://127.0.0.1:1",
                advertised: nil,
                build: "1",
                positions: [.init(partition: 0, seq: -1), .init(partition: 3, seq: 77)],
                atMs: now
            )
            try log.announce(node)
            #expect(try log.nodes() == [node])
            node.positions[0].seq = largestInteger
            node.advertised = "wss://example.org/é\u{0}"
            try log.announce(node)
            let other = NodeAnnouncement(
                id: "n2",
                role: "snapshot",
                url: "",
                advertised: "",
                build: "",
                positions: [],
                atMs: now
            )
            try log.announce(other)
            #expect(try log.nodes() == [node, other])
            node.atMs = now - 600_001
            try log.announce(node)
            #expect(try log.nodes() == [other])
        }
    }
}
