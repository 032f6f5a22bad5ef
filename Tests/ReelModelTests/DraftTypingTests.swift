import ReelClient
import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import Reel

/// The time of a key in a long text, while another author types. The figures are printed; only a time that a reader of
/// the whole text for each key would need fails the test.
@Suite(.serialized, .timeLimit(.minutes(10))) struct DraftTypingTests {
    private struct Times {
        private var nanoseconds: [Int64] = []

        mutating func measure(_ body: () throws -> Void) rethrows {
            let elapsed = try ContinuousClock().measure(body).components
            nanoseconds.append(elapsed.seconds * 1_000_000_000 + elapsed.attoseconds / 1_000_000_000)
        }

        var mean: Int64 { nanoseconds.reduce(0, +) / Int64(max(1, nanoseconds.count)) }

        func report(_ what: String) {
            let sorted = nanoseconds.sorted()
            func at(_ share: Double) -> Double {
                sorted.isEmpty ? 0 : Double(sorted[Int(Double(sorted.count - 1) * share)]) / 1_000
            }
            let figures = "median \(at(0.5)), p99 \(at(0.99)), max \(at(1))"
            print("\(what): \(sorted.count) in µs: mean \(Double(mean) / 1_000), \(figures)")
        }
    }

    /// A text of 100,000 characters.
    enum Kind: String, CaseIterable {
        case ascii = "The quick brown fox jumps over it.\n"
        case mixed = "Größe und 😀 e\u{301} 字 in einem Text.\n"

        var text: String { String(repeating: rawValue, count: 100_000 / rawValue.count) }
    }

    /// The pace and the places of the keys.
    enum Manner: CaseIterable { case burst, pauses, jumps }

    @Test("many keys in a long text beside another author", arguments: Kind.allCases, Manner.allCases)
    func keys(_ kind: Kind, _ manner: Manner) async throws {
        let text = kind.text
        let count = (manner == .burst ? 10_000 : 1_000) * effort
        let network = try FakeNetwork()
        let (first, second) = (try network.client(nodes: ["a"], seed: 5), try network.client(nodes: ["b"], seed: 6))
        let one = try await first.open("s", models: [Job.self], from: .beginning)
        let two = try await second.open("s", models: [Job.self], from: .beginning)
        var job = Job(id: "1")
        job.note = text
        _ = try await one.insert(job).outcome()
        try await two.stream.waitUntil(seq: 0)
        let (own, other) = (try one.draft(of: job.id, \.note), try two.draft(of: job.id, \.note))
        let author = Task {
            var keys = 0
            while !Task.isCancelled {
                while other.takeRemoteChange() != nil {}
                let end = other.text.utf16.count
                try other.replace(utf16: end..<end, with: keys % 8 == 7 ? "é " : "x")
                keys += 1
                try? await Task.sleep(for: .milliseconds(5))
            }
            return keys
        }
        var (times, takes, place) = (Times(), Times(), text.utf16.count / 2 / 35 * 35)
        own.selection = place..<place
        for key in 0..<count {
            let letter = ["a", "b", "ß", "😀", "\n", " "][key % 6]
            if manner == .jumps { own.selection = (key * 7_919 % 80_000)..<(key * 7_919 % 80_000) }
            place = own.selection.lowerBound
            if key % 16 == 15, manner != .jumps {
                try times.measure { try own.replace(utf16: place - 1..<place, with: "") }
            } else {
                try times.measure { try own.replace(utf16: place..<place, with: letter) }
            }
            if key % 8 == 0 { takes.measure { while own.takeRemoteChange() != nil {} } }
            if manner != .burst { try await Task.sleep(for: .milliseconds(1)) }
        }
        author.cancel()
        let others = try await author.value
        try await own.flush()
        try await other.flush()
        try await one.stream.flush(deadline: .seconds(60))
        try await two.stream.flush(deadline: .seconds(60))
        let head = try await network.on { $0.head }
        for dataset in [one, two] { try await dataset.stream.waitUntil(seq: head) }
        try await eventually("equal texts") {
            while own.takeRemoteChange() != nil {}
            while other.takeRemoteChange() != nil {}
            let text = try one.object(job.id)?.note ?? ""
            return [own.text, other.text].allSatisfy { $0.utf8.elementsEqual(text.utf8) }
        }
        let what = "\(kind), \(manner), \(head) events, \(others) others"
        times.report("key, \(what)")
        takes.report("take, \(what)")
        #expect(times.mean < 2_000_000)
        await first.close()
        await second.close()
    }
}
