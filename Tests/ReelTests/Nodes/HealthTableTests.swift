import Foundation
import ReelCore
import ReelGateway
import ReelLog
import ReelNet
import ReelNode
import ReelSQLite
import ReelSnapshot
import TestSupport
import Testing

@testable import ReelTool

/// Tests the table of docs/operations/health.md row by row: it brings a node with both roles
/// into each state, and asks it.
@Suite(.timeLimit(.minutes(10)))
struct HealthTableTests {
    /// A row of the table: the cells by their headings.
    struct Row: CustomTestStringConvertible, Sendable {
        var cells: [String: String]
        var state: String { cells["state"] ?? "" }
        var testDescription: String { state }

        subscript(column: String) -> String { (cells[column] ?? "").filter { $0 != "`" } }
    }

    static let rows: [Row] = {
        let page = (try? String(contentsOfFile: "\(root)/docs/operations/health.md", encoding: .utf8)) ?? ""
        let lines = page.split(separator: "\n").map(String.init)
        guard let head = lines.firstIndex(where: { $0.hasPrefix("| state |") }) else { return [] }
        func cells(_ line: String) -> [String] {
            line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
        }
        return lines[(head + 2)...].prefix { $0.hasPrefix("|") }.map { line in
            Row(cells: Dictionary(uniqueKeysWithValues: zip(cells(lines[head]), cells(line))))
        }
    }()

    private static let root = URL(fileURLWithPath: #filePath).pathComponents.dropLast(4).joined(separator: "/")
        .dropFirst()

    @Test("a node behaves in each state as docs/operations/health.md describes", arguments: rows)
    func matchesHealthTable(row: Row) async throws {
        let stand = try await HealthStand(row.state)
        do {
            try await stand.reach(row)
            #expect(try await stand.publish() == row["publish"])
            #expect(try await stand.status("events?after=-1") == row["fetch"])
            #expect(try await stand.status("snapshot") == row["snapshot"])
            #expect(try await stand.status("delta?after=0&epoch=\(stand.epoch)") == row["snapshot"])
            #expect(try await stand.status("objects/task/0") == row["object"])
            #expect(try await stand.digest() == row["digest"])
            #expect(try await stand.otherPartition() == ["ack", "200", "200", "200"])
            #expect(try await stand.readiness() == row["ready"])
            #expect(try await stand.stoppedPartitions() == row["metric"])
            #expect(stand.journalLines.contains { $0.contains(event: row["log line"]) }, "\(stand.journalLines)")
            #expect(try await stand.doctor() == row["doctor"])
        } catch {
            await stand.end()
            throw error
        }
        await stand.end()
    }
}

extension String {
    /// Returns true if this log line reports the event.
    func contains(event: String) -> Bool {
        contains("event=\(event) ") || contains("event=\"\(event)\" ") || hasSuffix("event=\(event)")
    }
}
