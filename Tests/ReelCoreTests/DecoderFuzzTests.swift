import Foundation
import ReelCore
import TestSupport
import Testing

@Suite struct DecoderFuzzTests {
    @Test(
        "mutations of the corpus break no decoder",
        arguments: [
            ("json", DecoderProperties.json), ("event", DecoderProperties.event), ("frame", DecoderProperties.frame),
        ] as [(String, @Sendable (Bytes) -> String?)]
    )
    func mutations(_ folder: String, _ property: @Sendable (Bytes) -> String?) throws {
        let corpus = try Self.corpus(folder)
        var random = SeededNumbers(TestSeed.value)
        for input in corpus {
            #expect(input.withUnsafeBytes(property) == nil)
        }
        for _ in 0..<4_000 * effort {
            let input = Self.mutated(corpus, &random)
            let fault = input.withUnsafeBytes(property)
            if let fault {
                Issue.record("\(fault): \(String(decoding: input, as: UTF8.self)) REEL_SEED=\(TestSeed.value)")
            }
        }
    }

    /// Returns the contents of all files in a folder of Tests/Corpus.
    private static func corpus(_ folder: String) throws -> [[UInt8]] {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let files = try FileManager.default.contentsOfDirectory(
            at: root.appending(path: "Corpus/\(folder)"),
            includingPropertiesForKeys: nil
        )
        #expect(!files.isEmpty)
        return try files.sorted { $0.path < $1.path }.map { Array(try Data(contentsOf: $0)) }
    }

    /// Returns an input of the corpus with up to four changes: bytes are replaced, removed, inserted, repeated, or
    /// copied from another input.
    private static func mutated(_ corpus: [[UInt8]], _ random: inout SeededNumbers) -> [UInt8] {
        var bytes = corpus.randomElement(using: &random) ?? []
        let tokens = ["\"", "\\", "{", "}", "[", "]", ",", ":", "0", "-", "e", "\\u0000", "\\ud800", "\u{1F602}", " "]
        for _ in 0...Int.random(in: 0...3, using: &random) where !bytes.isEmpty {
            let start = Int.random(in: 0..<bytes.count, using: &random)
            let end = min(bytes.count, start + Int.random(in: 1...12, using: &random))
            switch Int.random(in: 0..<6, using: &random) {
            case 0: bytes[start] = UInt8.random(in: .min ... .max, using: &random)
            case 1: bytes.removeSubrange(start..<end)
            case 2: bytes.insert(contentsOf: bytes[start..<end], at: start)
            case 3: bytes.insert(contentsOf: Array((tokens.randomElement(using: &random) ?? "").utf8), at: start)
            case 4: bytes[start] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            default:
                let other = corpus.randomElement(using: &random) ?? []
                bytes.replaceSubrange(start..<end, with: other.dropFirst(start).prefix(end - start))
            }
        }
        return bytes
    }
}
