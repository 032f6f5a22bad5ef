import ReelClient
import ReelCore
import TestSupport
import Testing

@testable import ReelCheck
@testable import ReelTesting

/// The log of a stream as the checker folds it, which shares no code with the client and the node.
struct CheckedFold {
    /// The outcome of an event, and the device that has sent it.
    struct Outcome: Equatable {
        let text: String
        let device: String

        init(_ text: String, _ device: String) { (self.text, self.device) = (text, device) }
    }

    /// The outcomes of all events, by seq.
    private(set) var outcomes: [Int64: Outcome] = [:]
    /// The fields of all objects, by model and id.
    private(set) var objects: [String: [String: [String: Plain]]] = [:]
    /// The ids of the deleted objects, by model.
    private(set) var deleted: [String: Set<String>] = [:]
    /// The hash of the whole state, as 16 hex digits.
    let digest: String

    /// Folds the log of a stream, and compares each outcome with that of the node.
    init(_ stream: String, of world: TestWorld) throws {
        let name = try #require(StreamName(stream))
        let records = world.network.node { node in
            node.streams[name]?.seqs.map { (seq: $0, record: node.records[Int($0)]) } ?? []
        }
        var fold = NaiveFold(epoch: TestNode.epoch.description, partition: 0, of: 1)
        for (seq, record) in records {
            let judgement = fold.apply(seq: seq, key: Array(stream.utf8), value: record.value)
            let text = try #require(judgement).description
            #expect(text == "\(record.outcome)", "\(String(decoding: record.value, as: UTF8.self))")
            outcomes[seq] = Outcome(text, record.device)
        }
        digest = fold.digest(of: stream)
        for line in try #require(fold.snapshot(of: stream)).split(separator: UInt8(ascii: "\n")) {
            try read(try JSON(reading: Array(line), depth: 40).named)
        }
    }

    /// Returns true if the object of a change was deleted.
    func isDeleted(_ change: SyncChange) -> Bool { deleted[change.model]?.contains(change.id) == true }

    /// Reads a line of a snapshot, of an object or of a deleted one.
    private mutating func read(_ line: [String: JSON]) throws {
        if let name = line["deleted"]?.array?.compactMap(\.text?.string) {
            deleted[name[0], default: []].insert(name[1])
        }
        guard let name = line["object"]?.array?.compactMap(\.text?.string) else { return }
        var fields: [String: Plain] = [:]
        // The value of a field comes first, and its writer after it.
        for (field, entry) in line["fields"]?.named ?? [:] { fields[field] = try #require(entry.array?.first).plain }
        objects[name[0], default: [:]][name[1]] = fields
    }
}

extension JSON {
    fileprivate var named: [String: JSON] {
        Dictionary((members ?? []).map { ($0.name.string, $0.value) }) { $1 }
    }

    fileprivate var plain: Plain {
        switch self {
        case .null, .object: .absent
        case .bool(let bool): .bool(bool)
        case .number(let number): .number(number)
        case .text(let text): .text(text.bytes)
        case .array(let values): .list(values.map(\.plain))
        }
    }
}
