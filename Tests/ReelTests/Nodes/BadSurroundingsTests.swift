import Foundation
import ReelCore
import ReelLab
import ReelLog
import ReelNet
import ReelSQLite
import TestSupport
import Testing

@testable import ReelTool

/// Tests a node in a bad environment: foreign or damaged files, a full disk, no descriptors, no port.
@Suite(.timeLimit(.minutes(20))) struct BadSurroundingsTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder(prefix: "reel-around-")
    }

    private func event(_ op: Int, _ text: String = "") -> String {
        let members = #""model":"m","id":"\#(op)","fields":{"text":"\#(text)"}"#
        return EventText.sent("insert", "00000000-0000-4000-8000-000000000001", op, members).text
    }

    private func publish(_ ops: Range<Int>, to node: NodeProcess, _ text: String = "") async throws -> HTTPResponse {
        let events = ops.map { event($0, text) }.joined(separator: ",")
        return try await node.ask("POST", "/v1/streams/todo/events", body: #"{"events":[\#(events)]}"#)
    }

    /// Publishes until all events are accepted. A slow log refuses for a while, and a kept connection may belong to a
    /// former node. Sending the same events again is safe.
    private func publishAll(_ ops: Range<Int>, to node: NodeProcess, _ text: String = "") async throws {
        try await eventually("\(ops) are taken") {
            guard let answer = try? await publish(ops, to: node, text) else { return false }
            let said = String(decoding: answer.body, as: UTF8.self)
            try #require(answer.status == 200 || said.contains(#""code":"log_unavailable""#), "\(said)")
            return answer.status == 200
        }
    }

    private func contents(_ path: String) throws -> Data { try Data(contentsOf: URL(filePath: path)) }

    private func write(_ text: String, to path: String) throws {
        try Data(text.utf8).write(to: URL(filePath: path))
    }

    // MARK: The command line

    static let mistakes: [(words: [String], code: Int32, says: String)] = [
        (["serve", "--listne", "127.0.0.1:0"], 2, "did you mean --listen?"),
        (["serve", "--listen"], 2, "--listen needs a value"),
        (["serve", "--partitions", "0"], 2, "expected is a whole number from 1 to"),
        (["serve", "--loops", "many"], 2, "`many`"),
        (["gateway", "extra"], 2, "`extra` is one operand too many"),
        (["gateway", "--log", "redis:x", "--listen", "127.0.0.1:0"], 2, "expected is sqlite:"),
        (["gateway", "--log", "kafka:x", "--listen", "127.0.0.1:0"], 2, "expected is HOST:PORT"),
        (["gateway", "--data", "DATA", "--listen", "127.0.0.1"], 2, "expected is HOST:PORT"),
        (["serve", "--data", "DATA", "--listen", "127.0.0.1:99999"], 2, "a port from 0 to 65535"),
        (["serve", "--data", "DATA", "--listen", "no.such.host.invalid:0"], 2, "--listen is `no.such.host.invalid:0`"),
        (
            ["gateway", "--log", "sqlite:DATA.sqlite", "--listen", "192.0.2.1:0", "--insecure"], 2,
            "no interface of this"
        ),
        (["serve", "--data", "DATA", "--advertise", "ftp:/x", "--listen", "127.0.0.1:0"], 2, "--advertise"),
        (["gateway", "--log", "sqlite:DATA/none/log.sqlite", "--listen", "127.0.0.1:0"], 1, "no folder DATA/none for"),
        (["dump", "--log", "sqlite:DATA/none.sqlite"], 1, "there is no log"),
        (["get", "todo", "--url", "http://127.0.0.1:1"], 3, "http://127.0.0.1:1"),
        (["publish", "todo", "{}", "--url", "http://127.0.0.1:1"], 3, "no node answered"),
        (["get", "todo", "--url", "127.0.0.1"], 2, "expected is http://HOST:PORT"),
        (["get", "a b"], 2, "a b"),
        (["fetch", "todo", "--from", "-7"], 2, "--from"),
        (["fold", "DATA/none"], 1, "DATA/none"), (["replay", "DATA/none"], 1, "DATA/none"),
        (["check", "DATA/none"], 1, "DATA/none"), (["token", "keygen", "--public", "DATA/none"], 1, "DATA/none"),
        (["serve", "--data", "DATA", "--jwks", "DATA/none"], 1, "DATA/none"),
        (["get", "todo", "--url", "https://127.0.0.1:1", "--ca", "DATA/none"], 1, "DATA/none"),
        (["publish", "todo", "{}", "--epoch", "zz"], 2, "--epoch is `zz`; expected is 16 lower-case hex digits"),
        (["fetch", "todo", "--epoch", "zz"], 2, "--epoch is `zz`"), (["dump", "--epoch", "zz"], 2, "--epoch is `zz`"),
    ]

    @Test("a mistake exits with its code and a helpful message", arguments: mistakes.indices)
    func mistakesHaveExitCodes(index: Int) async throws {
        let (words, code, says) = Self.mistakes[index]
        let place = folder.path + "/data"
        let run = try await BuiltProgram.run(
            words.map { $0.replacingOccurrences(of: "DATA", with: place) }
        )
        #expect(run.code == code, "\(words): \(run)")
        #expect(run.errors.contains(says.replacingOccurrences(of: "DATA", with: place)), "\(words): \(run)")
        #expect(run.errors.hasPrefix("reel: "), "\(words): \(run)")
        #expect(run.output.isEmpty)
    }

    @Test("a node neither changes a foreign file nor adds files beside it") func preservesForeignFile() async throws {
        let file = folder.path + "/letter"
        try write("Dear Sir or Madam,", to: file)
        let asLog = try await BuiltProgram.run(["gateway", "--log", "sqlite:\(file)", "--listen", "127.0.0.1:0"])
        #expect(asLog.code == 4 && asLog.errors.contains("no SQLite database"), "\(asLog)")
        let asFolder = try await BuiltProgram.run(["serve", "--data", file, "--listen", "127.0.0.1:0"])
        #expect(asFolder.code == 1 && asFolder.errors.contains("is not a folder; name a folder"), "\(asFolder)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["letter"])
        #expect(try contents(file) == Data("Dear Sir or Madam,".utf8))
    }

    /// Root may open every file, so the command runs as another user.
    @Test("a command that may not open the log fails without advice to retry") func deniedLogIsLasting() async throws {
        guard getuid() == 0 else {
            print("NOT TESTED: run as root to become a user without rights")
            return
        }
        let path = folder.path + "/log.sqlite"
        try SQLiteLog(path: path).close()
        // The program is in a folder that only its owner may read, so the test copies it.
        let program = folder.path + "/reel"
        try FileManager.default.copyItem(atPath: BuiltProgram.path, toPath: program)
        #expect(chmod(folder.path, 0o755) == 0 && chmod(program, 0o755) == 0)
        let nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups '\(program)'"
        for words in ["gateway --listen 127.0.0.1:0", "dump"] {
            let run = try await Shell.run("\(nobody) \(words) --log 'sqlite:\(path)'")
            #expect(run.code == 1 && run.errors.contains("this user must be able to write the file"), "\(run)")
        }
    }

    /// With the usual umask, other users may read the files themselves.
    @Test("a data folder that is made is for its user alone and one that was there stays as it is")
    func aDataFolderThat() throws {
        let (made, found) = (folder.path + "/made", folder.path + "/found")
        try #require(mkdir(found, 0o755) == 0 && chmod(found, 0o755) == 0)
        for (path, mode) in [(made, 0o700), (found, 0o755)] {
            try LogArguments.makeFolder(path)
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            #expect(attributes[.posixPermissions] as? Int == mode, "\(path)")
        }
    }

    /// Otherwise a mistyped name would give an empty log without any notice.
    @Test("a log that is made is named and one that is found is not") func aLogThatIsMade() async throws {
        let folder = try TemporaryFolder(prefix: "reel-new-")
        let first = try NodeProcess.gateway("first", in: folder)
        let says = #"event="a new log was made" log=sqlite:\#(folder.path)"#
        #expect(first.logger.contains("level=warning \(says)/log.sqlite epoch="), "\(first.logger)")
        let second = try NodeProcess.gateway("second", in: folder)
        #expect(second.logger.contains("event=listening"))
        #expect(!second.logger.contains("a new log was made"))
        let serve = try NodeProcess(["serve", "--data", folder.path + "/data"], in: folder, name: "serve")
        #expect(serve.logger.contains("level=info \(says)/data/log.sqlite epoch="), "\(serve.logger)")
    }

    @Test("a port in use is named") func aPortInUse() async throws {
        let node = try NodeProcess.serve(in: folder)
        let good = try await WellBehavedClient(node)
        for kind in ["serve", "gateway", "snapshot"] {
            let run = try await BuiltProgram.run(
                [kind, "--data", folder.path + "/other", "--listen", "127.0.0.1:\(node.port)"]
            )
            #expect(run.code == 1, "\(kind): \(run)")
            #expect(run.errors.contains("127.0.0.1:\(node.port)"), "\(kind): \(run)")
            #expect(run.errors.contains("in use; choose another address with --listen"), "\(kind): \(run)")
            #expect(!FileManager.default.fileExists(atPath: folder.path + "/other"), "nothing was made")
        }
        try await good.check(nothingButItsOwn: true)
    }

    // MARK: Files

    @Test("a folder of another process is left alone", arguments: ["serve", "snapshot"])
    func aFolderOfAnother(kind: String) async throws {
        let data = folder.path + "/data"
        let node = try NodeProcess.serve(in: folder)
        let good = try await WellBehavedClient(node)
        let run = try await BuiltProgram.run([kind, "--data", data, "--listen", "127.0.0.1:0"])
        #expect(run.code == 1, "\(run)")
        #expect(run.errors.contains("\(data)/snapshot is in use by another process"), "\(run)")
        try await good.check()
    }

    @Test("a log of another size is refused") func aLogOfAnother() async throws {
        let node = try NodeProcess.serve(in: folder)
        let run = try await BuiltProgram.run(
            ["gateway", "--data", folder.path + "/data", "--partitions", "5", "--listen", "127.0.0.1:0"]
        )
        #expect(run.code == 2, "\(run)")
        #expect(run.errors.contains("found a log with 4 partitions, expected 5"), "\(run)")
        try await node.becomesReady()
    }

    /// After `epoch new --partitions`, the log's number of partitions differs from the
    /// setting that a node was started with.
    @Test("a node explains a partition count that belongs to a former epoch") func explainsFormerPartitions()
        async throws
    {
        let log = ["--log", "sqlite:\(folder.path)/log.sqlite"]
        try SQLiteLog(path: folder.path + "/log.sqlite", partitions: 4).close()
        let change = try await BuiltProgram.run(["epoch", "new", "--partitions", "8"] + log)
        #expect(change.code == 0, "\(change)")
        try await BuiltProgram.complains(
            ["gateway", "--partitions", "4", "--listen", "127.0.0.1:0"] + log,
            .usage,
            "leave --partitions out, or say 8; `reel epoch new --partitions 4` makes the next log with 4"
        )
        let node = try NodeProcess(["gateway"] + log, in: folder)
        try await node.becomesReady()
    }

    @Test(
        "a command that only reads creates no log in an empty file",
        arguments: [["dump"], ["dump", "--epoch", "0123456789abcdef"], ["cluster"], ["doctor"]]
    )
    func readersCreateNoLog(words: [String]) async throws {
        let path = folder.path + "/empty.sqlite"
        try write("", to: path)
        var run = try await BuiltProgram.run(words + ["--log", "sqlite:\(path)"])
        // The doctor stops waiting for a log that is silent for long. On a busy machine the silence
        // may be a delay of its own thread.
        for _ in 0..<3 where run.output.contains("it has not answered within") {
            run = try await BuiltProgram.run(words + ["--log", "sqlite:\(path)"])
        }
        #expect(run.code == (words == ["doctor"] ? 3 : 4), "\(run)")
        #expect((run.output + run.errors).contains("found an empty file, expected a log: `\(path)`"), "\(run)")
        #expect(try contents(path).isEmpty)
    }

    @Test("a node refuses an empty log file after it has folded that log, and otherwise creates a log")
    func refusesEmptyLog() async throws {
        let node = try NodeProcess.serve(in: folder)
        try await publishAll(0..<3, to: node)
        _ = try await node.snapshot(of: "todo", upTo: 2)
        node.process.terminate(timeoutMs: 60_000)
        let (data, log) = (folder.path + "/data", folder.path + "/data/log.sqlite")
        try write("", to: log)
        // SQLite would remove the WAL of an empty file, and acked records with it.
        try write("records", to: log + "-wal")
        let words = ["--data", data, "--listen", "127.0.0.1:0"]
        for kind in ["serve", "gateway"] {
            try await BuiltProgram.complains([kind] + words, .badData, "an empty file with records in the -wal")
        }
        #expect(try contents(log + "-wal") == Data("records".utf8))
        try FileManager.default.removeItem(atPath: log + "-wal")
        for kind in ["serve", "gateway"] {
            let says = "found an empty log file, but the state of the log"
            try await BuiltProgram.complains([kind] + words, .badData, says)
            // The folder beside the file shows the same as the folder of --data.
            let beside = ["--log", "sqlite:\(log)", "--data", folder.path + "/other", "--listen", "127.0.0.1:0"]
            try await BuiltProgram.complains([kind] + beside, .badData, says)
        }
        #expect(try contents(log).isEmpty)
        try FileManager.default.removeItem(atPath: log)
        for kind in ["serve", "gateway"] {
            try await BuiltProgram.complains([kind] + words, .badData, "found no log, but the state of the log")
        }
        try FileManager.default.removeItem(atPath: data + "/snapshot")
        try write("", to: log)
        let gateway = try NodeProcess(["gateway", "--data", data], in: folder, name: "gateway")
        #expect(gateway.logger.contains(#"event="a new log was made in a file that was empty" log=sqlite:\#(log)"#))
    }

    @Test("the command line reports a missing snapshot folder or parent of a data folder") func reportsMissingFolder()
        async throws
    {
        let none = folder.path + "/none"
        try await BuiltProgram.complains(
            ["epoch", "new", "--data", folder.path, "--from-snapshot", none],
            .failed,
            "--from-snapshot is `\(none)`: No such file or directory; expected is the data folder of a snapshot node"
        )
        try await BuiltProgram.complains(
            ["serve", "--data", none + "/e/f", "--listen", "127.0.0.1:0"],
            .failed,
            "No such file or directory; create its parent folder first"
        )
    }

    @Test(
        "a file that is no log is not touched",
        arguments: ["text", "zeros", "a database of another program", "a damaged header"]
    )
    func aFileThatIs(kind: String) async throws {
        let path = folder.path + "/log.sqlite"
        switch kind {
        case "text": try write(String(repeating: "This is a letter to my aunt. ", count: 1_000), to: path)
        case "zeros": try Data(count: 100_000).write(to: URL(filePath: path))
        case "a damaged header":
            try SQLiteLog(path: path).close()
            try Connection(path: path, mode: .readWrite).execute("PRAGMA wal_checkpoint(TRUNCATE)")
            var bytes = try contents(path)
            bytes.replaceSubrange(0..<100, with: Data(repeating: 0xff, count: 100))
            try bytes.write(to: URL(filePath: path))
        default: try Connection(path: path, mode: .create).execute("CREATE TABLE aunt (name)")
        }
        let before = try contents(path)
        for command in ["gateway", "dump"] {
            let run = try await BuiltProgram.run(
                [command, "--log", "sqlite:\(path)"] + (command == "gateway" ? ["--listen", "127.0.0.1:0"] : [])
            )
            #expect(run.code == 4, "\(command): \(run)")
            #expect(run.errors.contains(path), "\(command): \(run)")
        }
        #expect(try contents(path) == before)
    }

    @Test(
        "a snapshot node sets a damaged snapshot aside and builds it again",
        arguments: ["zeros", "text", "nothing", "a page in the middle"]
    )
    func rebuildsDamagedSnapshot(kind: String) async throws {
        let node = try NodeProcess.serve(in: folder)
        try await publishAll(0..<500, to: node, String(repeating: "x", count: 200))
        let lines = try await node.snapshot(of: "todo", upTo: 499)
        let partition = try #require(StreamName("todo")).partition(of: 4)
        let epoch = try #require(try await node.members("/v1/streams/todo/head")["epoch"] as? String)
        let files = "\(folder.path)/data/snapshot/\(epoch)"
        let path = "\(files)/partition-\(partition).sqlite"
        node.process.terminate(timeoutMs: 60_000)
        try Connection(path: path, mode: .create).execute("PRAGMA wal_checkpoint(TRUNCATE)")
        var bytes = try contents(path)
        switch kind {
        case "zeros": bytes = Data(count: bytes.count)
        case "text": bytes = Data("this is no database".utf8)
        case "nothing": bytes = Data()
        default: bytes.replaceSubrange(8_192..<bytes.count, with: Data(repeating: 0xa5, count: bytes.count - 8_192))
        }
        try bytes.write(to: URL(filePath: path))
        try node.restart()
        #expect(try await node.snapshot(of: "todo", upTo: 499) == lines)
        let aside = try FileManager.default.contentsOfDirectory(atPath: files).filter {
            $0.hasPrefix("partition-\(partition).sqlite.aside-")
        }
        #expect(kind == "nothing" ? aside.isEmpty : try aside.contains { try contents("\(files)/\($0)") == bytes })
        #expect(try await node.ask("GET", "/v1/streams/todo/objects/m/7").status == 200)
    }

    @Test("files of another epoch stay where they are and positions of it are refused") func filesOfAnotherEpoch()
        async throws
    {
        let node = try NodeProcess.serve(in: folder)
        try await publishAll(0..<50, to: node)
        _ = try await node.snapshot(of: "todo", upTo: 49)
        let head = try await node.members("/v1/streams/todo/head")
        let (former, partition) = (try #require(head["epoch"] as? String), try #require(head["partition"] as? Int))
        node.process.terminate(timeoutMs: 60_000)
        for suffix in ["", "-wal", "-shm", ".lock"] {
            try? FileManager.default.removeItem(atPath: folder.path + "/data/log.sqlite" + suffix)
        }
        let file = folder.path + "/data/snapshot/\(former)/partition-\(partition).sqlite"
        let before = try contents(file)
        // No node creates a log beside the state of a former one, so the test creates it elsewhere.
        let other = try NodeProcess(["gateway", "--data", folder.path + "/other"], in: folder, name: "other")
        other.process.terminate(timeoutMs: 60_000)
        try FileManager.default.moveItem(
            atPath: folder.path + "/other/log.sqlite",
            toPath: folder.path + "/data/log.sqlite"
        )
        try node.restart()
        let good = try await WellBehavedClient(node)

        let answer = try await node.ask("GET", "/v1/streams/todo/events?after=3&epoch=\(former)")
        #expect(answer.status == 409)
        let problem = String(decoding: answer.body, as: UTF8.self)
        #expect(problem.contains(#""code":"epoch_changed""#) && problem.contains(#""epoch":"#), "\(problem)")
        let client = try await RawClient.socket(port: node.port)
        try await client.say(#"{"t":"subscribe","stream":"todo","after":3,"epoch":"\#(former)","ref":"r"}"#)
        let error = try await client.hear("error")
        #expect(error["code"] as? String == "epoch_changed" && error["ref"] as? String == "r")
        #expect(error["epoch"] as? String != former)

        try await publishAll(0..<1, to: node)
        let lines = String(decoding: try await node.snapshot(of: "todo", upTo: 0), as: UTF8.self)
        #expect(lines.contains(#""count":2,"#) && !lines.contains(former), "\(lines)")
        #expect(try contents(file) == before)
        try await good.check()
    }

    // MARK: Disk space and descriptors

    @Test("a node refuses publishes on a full disk and continues when there is room") func survivesFullDisk()
        async throws
    {
        let disk = folder.path + "/disk"
        try FileManager.default.createDirectory(atPath: disk, withIntermediateDirectories: false)
        guard mount("reel-test", disk, "tmpfs", 0, "size=64m") == 0 else {
            print("NOT TESTED: no small disk can be mounted here; run as root to test a full disk")
            return
        }
        defer { umount2(disk, Int32(MNT_DETACH)) }
        try Data(count: 52 << 20).write(to: URL(filePath: disk + "/ballast"))
        let node = try NodeProcess.serve(in: folder, data: disk + "/data")
        let good = try await WellBehavedClient(node)
        var (op, refusal): (Int, HTTPResponse?) = (0, nil)
        while refusal == nil, op < 20_000 {
            let answer = try await publish(op..<op + 10, to: node, String(repeating: "x", count: 20_000))
            if answer.status == 200 {
                op += 10
            } else if !String(decoding: answer.body, as: UTF8.self).contains("has not answered") {
                refusal = answer
            }
        }
        #expect(refusal?.status == 503)
        #expect(refusal?.headers["retry-after"] != nil)
        let problem = String(decoding: refusal?.body ?? [], as: UTF8.self)
        #expect(problem.contains(#""code":"log_unavailable""#) && !problem.contains(disk), "\(problem)")
        #expect(node.logger.contains("event=\"log cannot be written\"") && node.logger.contains("room"))
        // Reads still work, and so does the connection of a client that only reads.
        #expect(try await node.ask("GET", "/v1/streams/todo/events?limit=5").status == 200)
        #expect(try await node.ask("GET", "/healthz").status == 200)

        try FileManager.default.removeItem(atPath: disk + "/ballast")
        try await eventually("room again") {
            try await publish(op..<op + 1, to: node).status == 200
        }
        try await good.check()
        _ = try await node.snapshot(of: "todo", upTo: Int64(op))
        var log = DumpedLog(of: "todo", at: disk + "/data/log.sqlite")
        try await log.fold()
        #expect(try log.agrees(with: try await node.snapshot(of: "todo", upTo: log.seq)))
        #expect(log.outcomes.values.count { $0 == "applied" } == op + 1)
    }

    @Test("a node reports too few file descriptors at the start and survives a shortage later")
    func survivesDescriptorShortage() async throws {
        for limit in [12, 18] {
            let run = try await BuiltProgram.run(
                ["serve", "--data", folder.path + "/few-\(limit)", "--listen", "127.0.0.1:0"],
                shell: "ulimit -n \(limit);"
            )
            #expect(run.code == 3 || run.code == 1, "\(limit): \(run)")
            #expect(run.errors.contains("descriptors"), "\(limit): \(run)")
        }
        let node = try NodeProcess.serve(in: folder, shell: "ulimit -n 90;")
        let good = try await WellBehavedClient(node)
        var crowd = try (0..<120).map { _ in try RawClient(port: node.port) }
        for client in crowd { try await client.send("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n") }
        _ = try await crowd[0].receive(until: #"{"healthy":true}"#)
        try await good.check()
        crowd = []
        try await eventually("room for others") {
            let client = try RawClient(port: node.port)
            try await client.send("GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            return try await client.receiveAll().hasPrefix("HTTP/1.1 200 ")
        }
        try await good.check()
        try await publishAll(0..<10, to: node)
        _ = try await node.snapshot(of: "todo", upTo: 9)
    }
}
