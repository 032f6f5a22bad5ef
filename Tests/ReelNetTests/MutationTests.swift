import Foundation
import TestSupport
import Testing

@testable import ReelNet

/// Runs mutations of the corpora in Tests/Corpus through every decoder.
@Suite struct MutationTests {
    @Test("nothing traps and cuts do not matter", arguments: ["http-request", "http-answer", "websocket"])
    func nothingTrapsAndCuts(_ name: String)
        throws
    {
        var random = SeededNumbers(TestSeed.value)
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Corpus/\(name)")
        let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        let corpus = try files.sorted { $0.path < $1.path }.map { [UInt8](try Data(contentsOf: $0)) }
        try #require(corpus.count > 5)
        for round in 0..<1000 * effort {
            var bytes = corpus[round % corpus.count]
            for _ in 0..<Int.random(in: 0...4, using: &random) { mutate(&bytes, corpus, &random) }
            #expect(check(name, bytes) == nil, "\(bytes)")
        }
    }

    private func check(_ name: String, _ bytes: [UInt8]) -> String? {
        switch name {
        case "http-request": DecoderProperties.request(bytes)
        case "http-answer": DecoderProperties.answer(bytes)
        default: DecoderProperties.frames(bytes)
        }
    }

    private func mutate(_ bytes: inout [UInt8], _ corpus: [[UInt8]], _ random: inout SeededNumbers) {
        let place = Int.random(in: 0...bytes.count, using: &random)
        let end = min(bytes.count, place + Int.random(in: 1...8, using: &random))
        switch Int.random(in: 0..<6, using: &random) {
        case 0 where place < bytes.count: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        case 1 where place < bytes.count:
            bytes[place] = [0, 9, 10, 13, 32, 58, 59, 127, 128, 255].randomElement(using: &random)!
        case 2: bytes.removeSubrange(place..<end)
        case 3: bytes.insert(contentsOf: bytes[place..<end], at: place)
        case 4: bytes.insert(UInt8.random(in: .min ... .max, using: &random), at: place)
        default: bytes = Array(bytes[..<place] + corpus.randomElement(using: &random)!)
        }
    }
}
