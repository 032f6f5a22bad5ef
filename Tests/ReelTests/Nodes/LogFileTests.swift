import Foundation
import ReelLab
import ReelNet
import ReelSQLite
import TestSupport
import Testing

@testable import ReelTool

/// Tests the files of a node when an operator stops it, copies them, or restores them with the program's own commands.
@Suite(.timeLimit(.minutes(20))) struct LogFileTests {
    private let folder: TemporaryFolder
    private let files = FileManager.default

    init() throws {
        folder = try TemporaryFolder(prefix: "reel-files-")
    }

    private var data: String { folder.path + "/data" }

    private func publish(_ ids: Range<Int>, to node: NodeProcess) async throws {
        let events = ids.map { #"{"type":"insert","model":"task","id":"\#($0)"}"# }
        let run = try await BuiltProgram.run(["publish", "todo", "--url", node.url] + events)
        #expect(run.code == 0, "\(run)")
    }

    /// Stops a node with a drain.
    private func stop(_ node: NodeProcess) {
        node.process.terminate(timeoutMs: 60_000)
    }

    private func detail(of node: NodeProcess) async throws -> String {
        try await node.members("/readyz")["detail"] as? String ?? ""
    }

    private func metric(_ name: String, of node: NodeProcess) async throws -> Double {
        MetricsPage(String(decoding: try await node.ask("GET", "/metrics").body, as: UTF8.self)).value(name)
    }

    private func epoch(_ node: NodeProcess) async throws -> String {
        try await node.members("/v1/cluster")["epoch"] as? String ?? ""
    }

    @Test("a clean stop leaves each file complete alone, and a copy of log.sqlite contains everything")
    func cleanStop() async throws {
        let node = try NodeProcess.serve(in: folder)
        try await publish(0..<300, to: node)
        _ = try await node.snapshot(of: "todo", upTo: 299)
        stop(node)
        var left: [String: Int] = [:]
        for case let file as URL in files.enumerator(at: URL(filePath: data), includingPropertiesForKeys: nil)!
        where file.path.hasSuffix("-wal") {
            left[file.lastPathComponent] = (try files.attributesOfItem(atPath: file.path)[.size] as? Int) ?? -1
        }
        #expect(left.count == 5 && left.values.allSatisfy { $0 == 0 }, "\(left)")

        let alone = folder.path + "/alone"
        try files.createDirectory(atPath: alone, withIntermediateDirectories: false)
        try files.copyItem(atPath: data + "/log.sqlite", toPath: alone + "/log.sqlite")
        let other = try NodeProcess.serve(in: folder, data: alone)
        let lines = try await other.snapshot(of: "todo", upTo: 299)
        #expect(String(decoding: lines, as: UTF8.self).components(separatedBy: #""object":["task""#).count == 301)
    }

    @Test("a node on a copied file starts and warns in every place until the file is accepted, with nothing stopped")
    func copied() async throws {
        let first = try NodeProcess.serve(in: folder)
        try await publish(0..<3, to: first)
        stop(first)
        #expect(!first.logger.contains("the log may lack records"))
        let copy = folder.path + "/copy"
        try files.createDirectory(atPath: copy, withIntermediateDirectories: false)
        try files.copyItem(atPath: data + "/log.sqlite", toPath: copy + "/log.sqlite")
        let log = "sqlite:\(copy)/log.sqlite"

        let node = try NodeProcess(["serve", "--data", copy], in: folder, name: "copy")
        try await node.becomesReady()
        #expect(node.logger.contains(#"level=warning event="the log may lack records""#), "\(node.logger)")
        #expect(try await detail(of: node).contains("it was copied, or restored from a backup"))
        #expect(try await metric("reel_log_file_changed", of: node) == 1)
        for words in [["--url", node.url], ["--url", node.url, "--log", log]] {
            let doctor = try await BuiltProgram.run(["doctor"] + words)
            #expect(doctor.code == 1 && doctor.output.contains("reel log accept"), "\(doctor)")
            #expect(doctor.output.contains("problem  log"), "\(doctor)")
        }
        try await publish(3..<5, to: node)

        let accepted = try await BuiltProgram.run(["log", "accept", "--log", log])
        #expect(accepted.code == 0 && accepted.output.hasPrefix("accepted `\(copy)/log.sqlite`"), "\(accepted)")
        let audit = #"level=audit event="operator command" command="log accept" user="#
        #expect(accepted.errors.contains(audit), "\(accepted)")
        try await eventually("the node has nothing to say any more") { try await detail(of: node).isEmpty }
        // Each part of the node has opened the file separately, and checks it once a second.
        try await eventually("nor has its metric") { try await metric("reel_log_file_changed", of: node) == 0 }
        try await eventually("its journal says that it is over") {
            node.logger.contains(#"event="the log was accepted as it is""#)
        }
        let again = try await BuiltProgram.run(["log", "accept", "--data", copy])
        #expect(!again.errors.contains("level=audit"), "it changes nothing: \(again)")
        #expect(again.code == 0 && again.output.hasPrefix("found no warning"), "\(again)")
    }

    @Test("accepting is refused for a log that is not there, or not in a file") func acceptRefused() async throws {
        try await BuiltProgram.complains(["log", "accept", "--data", data], .failed, "there is no log at")
        #expect(!files.fileExists(atPath: data))
        try await BuiltProgram.complains(
            ["log", "accept", "--log", "kafka:127.0.0.1:1"],
            .usage,
            "a log on Kafka has no file"
        )
        try Data("hello".utf8).write(to: URL(filePath: folder.path + "/text"))
        try await BuiltProgram.complains(
            ["log", "accept", "--log", "sqlite:\(folder.path)/text"],
            .badData,
            "found a file that is no SQLite database"
        )
    }

    @Test("a restore as in deploy/README.md starts the next epoch, and no client continues in the former one")
    func restoreStartsEpoch() async throws {
        let node = try NodeProcess.serve(in: folder)
        let log = "\(data)/log.sqlite"
        try await publish(0..<100, to: node)
        // This is a backup of a running node.
        let backup = folder.path + "/backup.sqlite"
        try await makeBackup(of: log, at: backup)
        try await publish(100..<200, to: node)
        let before = try await epoch(node)
        stop(node)

        for suffix in ["", "-wal", "-shm", ".lock"] { try? files.removeItem(atPath: log + suffix) }
        try files.removeItem(atPath: data + "/snapshot")
        try files.copyItem(atPath: backup, toPath: log)
        let run = try await BuiltProgram.newEpoch(["--data", data])
        #expect(run.code == 0, "\(run)")
        try node.restart()
        try await node.becomesReady()
        #expect(try await epoch(node) != before)
        #expect(try await detail(of: node).isEmpty)
        try await eventually("the state of the backup is there") {
            let lines = try await node.snapshot(of: "todo")
            return String(decoding: lines, as: UTF8.self).components(separatedBy: #""object":["task""#).count == 101
        }
        let late = try await node.ask("GET", "/v1/streams/todo/events?after=199&epoch=\(before)")
        #expect(late.status == 409 && String(decoding: late.body, as: UTF8.self).contains("epoch_changed"))
        let doctor = try await BuiltProgram.run(["doctor", "--url", node.url])
        #expect(doctor.code == 0, "\(doctor)")
    }

    @Test("a log that has less than the snapshot folder beside it is not continued without a word")
    func lostBeside() async throws {
        var node = try NodeProcess.serve(in: folder)
        try await publish(0..<20, to: node)
        stop(node)
        let kept = folder.path + "/kept.sqlite"
        try files.copyItem(atPath: data + "/log.sqlite", toPath: kept)
        node = try NodeProcess.serve(in: folder)
        try await publish(20..<40, to: node)
        _ = try await node.snapshot(of: "todo", upTo: 39)
        stop(node)
        try files.removeItem(atPath: data + "/log.sqlite")
        try files.copyItem(atPath: kept, toPath: data + "/log.sqlite")
        let words = ["epoch", "new", "--data", data]
        for more in [[], ["--dry-run"]] {
            let refused = try await BuiltProgram.run(words + more)
            #expect(refused.code == 1, "\(refused)")
            #expect(refused.errors.contains("has folded it to seq 39"), "\(refused)")
            #expect(refused.errors.contains("`--from-snapshot \(data)/snapshot`"), "\(refused)")
        }
        let run = try await BuiltProgram.run(words + ["--from-snapshot", data + "/snapshot"])
        #expect(run.code == 0 && run.output.contains(" 40 objects,"), "\(run)")
    }

    @Test("a node warns of a restore without a new epoch, also when a client is ahead of the backup")
    func warnsOfBareRestore() async throws {
        let node = try NodeProcess.serve(in: folder)
        let log = "\(data)/log.sqlite"
        try await publish(0..<10, to: node)
        let backup = folder.path + "/backup.sqlite"
        try await makeBackup(of: log, at: backup)
        try await publish(10..<20, to: node)
        let epoch = try await epoch(node)
        stop(node)
        try files.removeItem(atPath: data)
        try files.createDirectory(atPath: data, withIntermediateDirectories: false)
        try files.copyItem(atPath: backup, toPath: log)
        try node.restart()
        try await node.becomesReady()
        #expect(try await detail(of: node).contains("reel epoch new"))
        let late = try await node.ask("GET", "/v1/streams/todo/events?after=19&epoch=\(epoch)")
        #expect(late.status == 409 && String(decoding: late.body, as: UTF8.self).contains("ahead_of_log"))
        #expect(try await metric("reel_gateway_ahead_of_log_total", of: node) == 1)
        try await eventually("the journal names the seq") {
            node.logger.contains(#"event="a client is ahead of the log" epoch=\#(epoch) "#)
                && node.logger.contains("stream=todo seq=19 ")
        }
        let doctor = try await BuiltProgram.run(["doctor", "--url", node.url])
        #expect(
            doctor.code == 1 && doctor.output.contains("have seqs of this epoch that the log does not have"),
            "\(doctor)"
        )
        // The nodes move to the new epoch, and the warning ends.
        let run = try await BuiltProgram.newEpoch(["--data", data])
        #expect(run.code == 0, "\(run)")
        try await eventually("the node has nothing to say any more") {
            guard let ready = try? await node.members("/readyz") else { return false }
            return ready["epoch"] as? String != epoch && ready["detail"] == nil
        }
    }

    /// Copies the log as `sqlite3 LOG ".backup FILE"` does, and with that program if it is installed.
    private func makeBackup(of log: String, at path: String) async throws {
        if try await Shell.has("command -v sqlite3", "sqlite3: apt-get install sqlite3") {
            #expect(try await Shell.run(#"sqlite3 "$0" ".backup '$1'""#, [log, path]).code == 0)
        } else {
            try Connection(path: log, mode: .readWrite).execute("VACUUM INTO '\(path)'")
        }
    }
}
