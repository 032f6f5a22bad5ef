import TestSupport
import Testing

@testable import ReelCheck

/// Tests the checker on random runs: a run is valid as generated, and not valid after one change.
@Suite struct RandomRunTests {
    @Test("random runs in which all is well are valid") func randomRunsInWhich() async throws {
        let seed = TestSeed.given(or: 1)
        for seed in seed..<seed + UInt64(25 * effort) {
            let verdict = try await RandomRun(seed: seed).run.verdict()
            #expect(verdict.word == .valid, "seed \(seed)\n\(verdict.text)")
            if verdict.word != .valid { return }
        }
    }

    @Test("one thing that is changed is found", arguments: Damage.allCases)
    func oneThingThatIs(damage: Damage) async throws {
        let seed = TestSeed.given(or: 1_000)
        var done = 0
        for seed in seed..<seed + UInt64(10 * effort) {
            var random = SeededNumbers(seed)
            var run = RandomRun(seed: seed).run
            guard damage.strike(&run, &random) else { continue }
            done += 1
            let verdict = try await run.verdict()
            #expect(verdict.word == .invalid, "\(damage), seed \(seed)\n\(verdict.text)")
            if verdict.word != .invalid { return }
        }
        #expect(done > 2, "\(damage) never happened")
    }

    /// A change of the evidence that a defect of Reel would cause.
    enum Damage: CaseIterable {
        case eventLeftOut, otherBytes, ackElsewhere, recordGone, recordsSwapped, reachedTooFar, wrongDigest
        case snapshotLine, uptoTooFar, acksSwapped, unacked, eventTwice, pushSkips, logCut

        /// Applies the change. Returns false if the run has no place for it.
        func strike(_ run: inout RecordedRun, _ random: inout SeededNumbers) -> Bool {
            switch self {
            case .eventLeftOut:
                return change(&run, "events", /\[\d+,\d+,\d+,"[0-9a-f]+"\],/, &random) { _ in "" }
            case .otherBytes:
                return change(&run, "events", /,"[0-9a-f]{16}"\]/, &random) { _ in #","00000000deadbeef"]"# }
            case .ackElsewhere:
                return change(&run, "ack", /,\d+\]\]/, &random) { match in
                    ",\((Int(match.dropFirst().dropLast(2)) ?? 0) + 1)]]"
                }
            case .recordGone:
                return record(&run, &random) { run, partition, seq in
                    // Without its first seq, a log would look trimmed.
                    guard seq > 0 else { return false }
                    run.log[partition][seq] = nil
                    return true
                }
            case .recordsSwapped:
                return record(&run, &random) { run, partition, seq in
                    guard seq > 0, let a = run.log[partition][seq], let b = run.log[partition][seq - 1],
                        run.parts(b) != nil, a.value != b.value
                    else { return false }
                    run.log[partition].swapAt(seq, seq - 1)
                    return true
                }
            case .reachedTooFar:
                return change(&run, "reached", /"seq":-?\d+/, &random) { match in
                    "\"seq\":\((Int(match.dropFirst(6)) ?? 0) + 1)"
                }
            case .wrongDigest:
                return change(&run, "state", /"digest":"[0-9a-f]/, &random) { match in
                    String(match.dropLast()) + (match.last == "a" ? "b" : "a")
                }
            case .snapshotLine:
                guard let (name, text) = run.files.first(where: { $0.value.contains(#""n":["#) }) else { return false }
                run.files[name] = text.replacing(#""n":["#, with: #""n":[1"#)
                return true
            case .uptoTooFar:
                return change(&run, "upto", /"seq":-?\d+/, &random) { match in
                    "\"seq\":\((Int(match.dropFirst(6)) ?? 0) + 1_000)"
                }
            case .acksSwapped:
                return change(&run, "ack", /\[\d+,\d+,\d+\],\[\d+,\d+,\d+\]/, &random) { match in
                    let halves = match.dropFirst().dropLast().split(separator: "],[")
                    return "[\(halves[1])],[\(halves[0])]"
                }
            case .unacked: return change(&run, "end", /"unacked":0/, &random) { _ in "\"unacked\":2" }
            case .eventTwice:
                return change(&run, "events", /\[\d+,\d+,\d+,"[0-9a-f]+"\]/, &random) { "\($0),\($0)" }
            case .pushSkips:
                return change(&run, "events", /"from":\d+/, &random) { match in
                    "\"from\":\((Int(match.dropFirst(7)) ?? 0) + 1)"
                }
            case .logCut:
                return record(&run, &random) { run, partition, seq in
                    run.log[partition].removeSubrange(seq...)
                    return true
                }
            }
        }

        /// Replaces the first match of the pattern in a random line of this kind.
        private func change(
            _ run: inout RecordedRun,
            _ kind: String,
            _ pattern: some RegexComponent,
            _ random: inout SeededNumbers,
            _ new: (Substring) -> String
        ) -> Bool {
            let places = run.histories.keys.sorted().flatMap { name in
                run.histories[name]!.enumerated().filter { line in
                    line.element.hasPrefix(#"{"e":"\#(kind)""#) && line.element.firstMatch(of: pattern) != nil
                }.map { (name, $0.offset) }
            }
            guard !places.isEmpty else { return false }
            let (name, line) = random.pick(places)
            let text = run.histories[name]![line]
            guard let range = text.firstRange(of: pattern) else { return false }
            run.histories[name]![line] = text.replacingCharacters(in: range, with: new(text[range]))
            return true
        }

        /// Calls `body` with the partition and seq of a random ack.
        private func record(
            _ run: inout RecordedRun,
            _ random: inout SeededNumbers,
            _ body: (inout RecordedRun, Int, Int) -> Bool
        ) -> Bool {
            let acks = run.histories.values.joined().filter { $0.hasPrefix(#"{"e":"ack""#) }.sorted()
            guard !acks.isEmpty else { return false }
            let line = random.pick(acks)
            guard let stream = line.firstMatch(of: /"stream":"(\w+)"/)?.1,
                let seq = line.firstMatch(of: /\[\[\d+,\d+,(\d+)/).flatMap({ Int($0.1) })
            else { return false }
            return body(&run, partition(of: Array(stream.utf8), among: run.partitions), seq)
        }
    }
}

extension String {
    /// Returns the text with the range replaced.
    fileprivate func replacingCharacters(in range: Range<String.Index>, with new: String) -> String {
        self[..<range.lowerBound] + new + self[range.upperBound...]
    }
}
