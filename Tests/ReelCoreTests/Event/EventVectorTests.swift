import Foundation
import ReelCore
import Testing

/// Checks the vectors in Tests/Vectors/events.json, which every implementation must match.
@Suite struct EventVectorTests {
    struct File: Decodable {
        var records: [Record]
        var intake: [Taken]
    }

    /// A record at seq 0 of the only partition of a log, with its kind.
    struct Record: Decodable, Sendable, CustomTestStringConvertible {
        var about: String
        var key: String
        var value: String
        var `is`: String
        var testDescription: String { about }
    }

    /// A sent event, and the record value that the intake makes of it, or the code of the error.
    struct Taken: Decodable, Sendable, CustomTestStringConvertible {
        var about: String
        var sent: String
        var by: String?
        var at: Int64
        var base: Int64
        var value: String?
        var code: String?
        var testDescription: String { about }
    }

    static func file() throws -> File {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let data = try Data(contentsOf: root.appending(path: "Vectors/events.json"))
        return try JSONDecoder().decode(File.self, from: data)
    }

    @Test("a reader classifies a record as its test vector says", arguments: try file().records)
    func classifiesRecords(_ record: Record) {
        var rules = PartitionRules(partition: 0, of: 1)
        var event = ParsedEvent()
        let kind = Array(record.key.utf8).withUnsafeBytes { key in
            Array(record.value.utf8).withUnsafeBytes { rules.read(key: key, value: $0, into: &event) }
        }
        let name =
            switch kind {
            case .event: "event"
            case .seed: "seed"
            case .barrier: "barrier"
            case .unknownBarrier: "stopped"
            case .void: "void"
            }
        #expect(name == record.is, "\(kind)")
    }

    @Test("the event intake turns a sent event into the result in its test vector", arguments: try file().intake)
    func takesSentEvents(_ taken: Taken) throws {
        var intake = EventIntake(limit: 1 << 18)
        var output: [UInt8] = []
        let stamp = EventIntake.Stamp(by: taken.by, atMs: taken.at, base: taken.base)
        var code: ErrorCode?
        do {
            try Array(taken.sent.utf8).withUnsafeBytes { try intake.take($0, stamp: stamp, into: &output) }
        } catch let error as ReelError {
            code = error.code
        }
        #expect(code?.rawValue == taken.code)
        #expect(String(decoding: output, as: UTF8.self) == taken.value ?? "")
    }
}
