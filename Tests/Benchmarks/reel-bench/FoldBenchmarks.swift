import Foundation
import ReelCore
import ReelLab

/// Measures how many records one core decodes and folds. A device and a snapshot node do this with each event.
enum FoldBenchmark {
    static func run() throws -> [Measured] {
        let (objects, updates) = (10_000, 300_000)
        let (inserts, events) = (BenchEvents.inserts(objects), BenchEvents.updates(updates, of: objects))
        let rates = try (0..<5).map { _ in
            var folded = FoldedStream()
            folded.fold(inserts)
            let taken = seconds { folded.fold(events) }
            guard folded.isWhole, folded.state.objectCount == objects else {
                throw BenchmarkError("an event was refused")
            }
            return Double(updates) / taken
        }
        return [
            Measured(
                work: "decode + fold, 200 B updates of \(objects) objects of 5 fields, one core",
                value: median(rates),
                unit: "events/s",
                goal: .atLeast(400_000)
            )
        ]
    }

    private struct FoldedStream {
        var rules = PartitionRules(partition: 0, of: 1)
        var event = ParsedEvent()
        var state = Fold(stream: StreamName("bench")!, partition: 0, epoch: Epoch(0))
        var next: Seq = 0
        var isWhole = true

        mutating func fold(_ records: [[UInt8]]) {
            Array("bench".utf8).withUnsafeBytes { key in
                for record in records {
                    record.withUnsafeBytes { value in
                        if case .event = rules.read(key: key, value: value, into: &event) {
                            if state.apply(event, value, seq: next) != .applied { isWhole = false }
                        } else {
                            isWhole = false
                        }
                    }
                    next += 1
                }
            }
        }
    }
}

/// Measures how fast a recorded editing session is decoded and folded: 137,993 splices into one text.
enum SessionBenchmark {
    static func run() throws -> [Measured] {
        guard let folder = ProcessInfo.processInfo.environment["REEL_TRACES"] else {
            throw NotMeasured("REEL_TRACES is not set; it names the folder that holds seph-blog1.json.gz")
        }
        let file = try Data(contentsOf: URL(fileURLWithPath: folder + "/seph-blog1.json.gz"))
        let session = try EditingSession(file: Array(file))
        let rates = try (0..<5).map { _ in
            let folded = session.folded()
            guard folded.difference == nil else {
                throw BenchmarkError("the final text differs from the text in the editor")
            }
            return Double(session.patchCount) / (Double(folded.durationNs) / 1e9)
        }
        return [
            Measured(
                work: "seph-blog1: \(session.patchCount) splices through decode + fold",
                value: median(rates),
                unit: "splices/s",
                goal: .atLeast(150_000)
            )
        ]
    }
}
