import Foundation

@testable import ReelCheck

/// A recorded editing session as records of a stream. The first event creates the note. Each transaction becomes one
/// event of its author with all patches.
struct RecordedSession {
    let records: [[UInt8]]
    let endContent: Text

    static let key = Array("session".utf8)

    /// The folder with the recorded sessions, or nil if this machine does not have them.
    static var folder: String? { ProcessInfo.processInfo.environment["REEL_TRACES"].flatMap { $0.isEmpty ? nil : $0 } }

    init(_ name: String, in folder: String) throws {
        let session = try JSON(reading: unzipped("\(folder)/\(name).json.gz"), depth: 8)
        let transactions = session["txns"]?.array ?? []
        endContent = session["endContent"]?.text ?? Text("")

        let text = JSON.Member("text", session["startContent"] ?? .string(""))
        var records = [
            Self.event(site: 9, op: 0, base: -1, "insert", .init("fields", .object([text])))
        ]
        // For each transaction, the number of the last transaction of each agent that its author knew, including its
        // own.
        var known: [[Int64: Int64]] = []
        var ops: [Int64: Int64] = [:]
        for (index, transaction) in transactions.enumerated() {
            let agent = transaction["agent"]?.integer ?? 0
            let parents = transaction["parents"]?.array?.compactMap(\.integer) ?? (index > 0 ? [Int64(index) - 1] : [])
            var seen: [Int64: Int64] = [:]
            for parent in parents { seen.merge(known[Int(parent)], uniquingKeysWith: max) }
            // The first event creates the note, so transaction i has seq i + 1. If there is one author, it knows
            // everything.
            let others = seen.filter { $0.key != agent }.values.max()
            let base = transaction["parents"] == nil ? Int64(index) : (others ?? -1) + 1
            seen[agent] = Int64(index)
            known.append(seen)
            let splice = JSON.object([.init("splice", transaction["patches"] ?? .null)])
            records.append(
                Self.event(
                    site: agent,
                    op: ops[agent, default: 0],
                    base: base,
                    "update",
                    .init("ops", .object([.init("text", splice)]))
                )
            )
            ops[agent, default: 0] += 1
        }
        self.records = records
    }

    private static func event(
        site: Int64,
        op: Int64,
        base: Int64,
        _ type: String,
        _ content: JSON.Member
    ) -> [UInt8] {
        JSON.object([
            .init("base", .integer(base)), content, .init("id", .string("1")), .init("model", .string("note")),
            .init("op", .integer(op)), .init("site", .text(Site(high: 1, low: UInt64(site)).text)),
            .init("type", .string(type)),
        ]).canonical
    }
}

extension JSON {
    /// The value of the member with this name.
    subscript(name: String) -> JSON? {
        members?.first { $0.name == Text(name) }?.value
    }
}
