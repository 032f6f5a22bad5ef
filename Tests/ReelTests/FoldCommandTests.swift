import Foundation
import ReelCore
import ReelLab
import TestSupport
import Testing

@testable import ReelTool

/// Tests that `reel fold` reads records as lines and reports the outcome of each.
@Suite struct FoldCommandTests {
    private let site = "00000000-0000-4000-8000-00000000000a"

    private func line(_ seq: Int, _ key: String, _ value: String, partition: Int = 0) throws -> String {
        let quoted = String(decoding: try JSONEncoder().encode(value), as: UTF8.self)
        return #"{"partition": \#(partition), "seq": \#(seq), "key": "\#(key)", "value": \#(quoted)}"#
    }

    private func insert(_ op: Int, base: Int = -1) -> String {
        let (base, fields) = (Int64(base), #"{"title":"Milk"}"#)
        return EventText.logged("insert", site, op, base: base, model: "task", id: "\(op)", fields: fields).text
    }

    /// Runs `reel fold` on a file of these lines.
    private func fold(_ lines: [String], _ words: [String] = []) async throws -> CommandRun {
        let folder = try TemporaryFolder(prefix: "reel-cli-")
        let file = folder.path + "/lines.jsonl"
        try Data(lines.map { $0 + "\n" }.joined().utf8).write(to: URL(filePath: file))
        let run = await CommandRun(["fold", file] + words)
        withExtendedLifetime(folder) {}
        return run
    }

    @Test("each record has its outcome and the snapshot follows") func eachRecordHasIts() async throws {
        let update = EventText.logged("update", site, 1, base: 0, model: "task", id: "9").text
        let run = try await fold(
            [
                line(0, "todo", insert(0)), line(1, "todo", insert(0)), line(2, "todo", update),
                line(3, "todo", insert(7)), line(4, "todo", " {}"),
                line(5, "~reel", #"{"open":true,"type":"barrier"}"#),
                line(6, "~reel", #"{"fold":77,"type":"barrier"}"#), line(7, "todo", insert(2)),
            ],
            ["--outcomes", "--check"]
        )
        #expect(run.code == .done, "\(run.errors)")
        let lines = run.output.split(separator: "\n")
        let outcomes = [
            "applied", "duplicate", "rejected(no_object)", "gap", "void", "barrier", "stopped", "stopped",
        ]
        #expect(
            lines.prefix(8).map(String.init)
                == outcomes.enumerated().map { #"{"seq":\#($0.offset),"outcome":"\#($0.element)"}"# }
        )
        // The fold stops before the unknown barrier.
        #expect(lines[8].contains(#""seq":5,"#))
        #expect(lines.last?.hasPrefix(#"{"count":2,"digest":""#) == true)
    }

    @Test("the fold command warns of a seed if its row is incomplete") func warnsOfIncompleteRow() async throws {
        let seed = #"{"line":{"end":-1,"op":4,"site":"\#(site)"},"type":"seed"}"#
        let run = try await fold([line(3, "todo", seed), line(4, "~reel", #"{"open":true,"type":"barrier"}"#)])
        #expect(run.code == .done && run.errors.contains("warning: 1 seed of the stream"), "\(run)")
    }

    @Test("seeds are folded in their row only") func seedsAreFoldedIn() async throws {
        let seed = #"{"line":{"end":-1,"op":4,"site":"\#(site)"},"type":"seed"}"#
        let run = try await fold(
            [
                line(0, "todo", seed), line(1, "todo", seed), line(2, "~reel", #"{"open":true,"type":"barrier"}"#),
                line(3, "todo", seed), line(4, "todo", insert(5)),
            ],
            ["--outcomes", "--check"]
        )
        #expect(run.code == .done, "\(run.errors)")
        #expect(run.output.contains(#"{"seq":1,"outcome":"seed"}"#))
        #expect(run.output.contains(#"{"seq":3,"outcome":"void"}"#))
        #expect(run.output.contains(#"{"seq":4,"outcome":"applied"}"#))
        let inside = try await fold([line(0, "todo", seed)])
        #expect(inside.code == .badData)
        #expect(inside.errors.contains("inside the seeds"))
    }

    @Test("the dump of one stream has the seeds of others beside its own, and is folded as if they were not there")
    func seedsOfOthers() async throws {
        func seed(_ number: Int) -> String {
            #"{"line":{"end":-1,"op":4,"site":"00000000-0000-4000-8000-00000000000\#(number)"},"type":"seed"}"#
        }
        let todo = try #require(StreamName("todo"))
        let place = todo.partition(of: 16)
        let others = (0..<200).compactMap { StreamName("other-\($0)") }.filter { $0.partition(of: 16) == place }
        var lines: [String] = []
        for (number, name) in [others[0], others[1], todo, others[2], todo].map(\.description).enumerated() {
            lines.append(try line(number, name, seed(number), partition: place))
        }
        lines.append(try line(5, "~reel", #"{"open":true,"type":"barrier"}"#, partition: place))
        lines.append(try line(6, "todo", insert(0), partition: place))
        for words in [[], ["--stream", "todo"]] {
            let run = try await fold(lines, words + ["--outcomes", "--check"])
            #expect(run.code == .done && run.errors.isEmpty, "\(run)")
            #expect(run.output.contains(#"{"seq":4,"outcome":"seed"}"#) && !run.output.contains("void"), "\(run)")
        }
    }

    @Test("several streams need a name") func severalStreamsNeedA() async throws {
        let lines = [try line(0, "todo", insert(0)), try line(1, "list", insert(0))]
        let unnamed = try await fold(lines)
        #expect(unnamed.code == .usage)
        #expect(unnamed.errors.contains("2 streams (list, todo)"))
        let named = try await fold(lines, ["--stream", "todo", "--outcomes"])
        #expect(named.output.hasPrefix(#"{"seq":0,"outcome":"applied"}"#))
        #expect(!named.output.contains(#"{"seq":1,"outcome""#))
        #expect(named.output.contains(#""seq":1,"sites""#), "the neighbour's record moves the seq on")
    }

    @Test("a record in another partition than its keys is void") func aRecordInAnother() async throws {
        let run = try await fold([line(0, "todo", insert(0), partition: 0)], ["--outcomes", "--partitions", "1"])
        #expect(run.output.hasPrefix(#"{"seq":0,"outcome":"applied"}"#))
        let two = [try line(0, "todo", insert(0), partition: 0), try line(0, "todo", insert(0), partition: 1)]
        #expect(try await fold(two).errors.contains("--partitions"))
    }

    @Test("the fold command names the line of an invalid record") func namesInvalidLine() async throws {
        let run = try await fold([line(0, "todo", insert(0)), #"{"partition":0,"seq":1,"key":"todo"}"#])
        #expect(run.code == .badData)
        #expect(run.errors.contains("line 2: a member is missing"))
        let order = try await fold([line(1, "todo", insert(0)), line(1, "todo", insert(1))])
        #expect(order.errors.contains("expected are ascending seqs"))
        #expect(await CommandRun(["fold", "/nowhere/at/all"]).code == .failed)
    }
}
