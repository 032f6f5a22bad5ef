import Foundation
import NodeTestSupport
import ReelCore
import ReelLab
import TestSupport
import Testing

@testable import ReelTool

/// Tests the commands that talk to nodes, with a gateway and a snapshot node on one log, as processes.
@Suite struct NodeCommandTests {
    private let cluster: LocalCluster

    init() throws {
        cluster = try LocalCluster()
    }

    /// Runs a command on the gateway. If a node is too slow on a busy machine, a command that only reads runs again.
    private func reel(_ words: String..., isTerminal: Bool = false) async -> CommandRun {
        await reel(words, isTerminal: isTerminal)
    }

    private func reel(_ words: [String], isTerminal: Bool = false) async -> CommandRun {
        let words = words + ["--url", cluster.gateway.url]
        var run = await CommandRun(words, isTerminal: isTerminal)
        for _ in 0..<5 where run.code == .unreachable && ["fetch", "get", "digest", "streams"].contains(words[0]) {
            run = await CommandRun(words, isTerminal: isTerminal)
        }
        return run
    }

    private func milk(_ op: Int) -> String {
        #"{"type":"insert","model":"task","id":"\#(op)","fields":{"title":"Milk \#(op)"}}"#
    }

    @Test("fetch and get return published events and their state") func fetchesAndGets() async throws {
        let published = await reel("publish", "todo", milk(0), milk(1), "--json", "--no-outcome")
        #expect(published.code == .done, "\(published.errors)")
        let acks = published.output.split(separator: "\n")
        #expect(acks.count == 2 && acks[0].hasSuffix(#""seq":0}"#) && acks[1].hasSuffix(#""seq":1}"#))

        let fetched = await reel("fetch", "todo")
        let events = fetched.output.split(separator: "\n")
        #expect(events.count == 2)
        #expect(events.first?.hasPrefix(#"{"seq":0,"#) == true)
        #expect(events.last?.contains(#""last":true"#) == true, "the fresh site ends")
        #expect(fetched.errors.hasPrefix("all of todo in 0…1 of epoch "))
        #expect(await reel("fetch", "todo", "--from", "1", "--to", "1").output.split(separator: "\n").count == 1)

        try await cluster.snapshotReaches(1)
        let rows = await reel("get", "todo", isTerminal: true)
        #expect(rows.output.split(separator: "\n") == [#"task/0  0  title="Milk 0""#, #"task/1  1  title="Milk 1""#])
        let one = await reel("get", "todo", "task", "1")
        #expect(one.output.contains(#""title":["Milk 1",1]"#), "\(one.output)")
        let list = await reel("get", "todo", "task")
        #expect(list.output.split(separator: "\n").last.map { $0 + "\n" } == one.output[...], "\(list.output)")
        #expect(await reel("get", "todo", "task", "2").code == .failed)

        let none = await reel("get", "todo", "list")
        #expect(none.code == .done && none.output.isEmpty && none.errors == "todo has no object of the model list\n")
        for words in [["get", "todoo"], ["get", "todoo", "task"], ["get", "todoo", "task", "1"]] {
            let run = await reel(words)
            #expect(run.code == .failed && run.output.isEmpty, "\(run)")
            let text = "there is no stream todoo yet: no event was ever published to it; did you mean todo?\n"
            #expect(run.errors == "reel: " + text, "\(run)")
        }

        let digest = await reel("digest", "todo", "--json")
        #expect(digest.code == .done, "\(digest.output)")
        let folded = await CommandRun(["digest", "todo", "--url", cluster.snapshot.url, "--json"])
        #expect(folded.output.suffix(40) == digest.output.suffix(40), "the node itself says the same")
    }

    @Test("a bad event is refused and nothing is appended") func aBadEventIs() async throws {
        let run = await reel("publish", "todo", milk(0), #"{"type":"insert"}"#)
        #expect(run.code == .badData)
        #expect(run.errors.hasPrefix("reel: event 2: ") && run.errors.contains("(bad_event); no event is published"))
        #expect(await reel("fetch", "todo").output.isEmpty)
        #expect(await reel("publish", "todo", "{").errors.contains("event 1: "))
        #expect(await reel("publish", "no/stream", milk(0)).code == .usage)
    }

    @Test("publish names a refused event and counts the events published before it") func namesRefusedEvent()
        async throws
    {
        let sound = [String](repeating: #"{"type":"noop"}"#, count: 502)
        let words = ["publish", "todo"] + sound + [#"{"type":"insert"}"#, "--url", cluster.gateway.url]
        let run = await CommandRun(words)
        #expect(run.code == .badData && run.errors.contains("reel: event 503: "), "\(run.errors)")
        #expect(run.errors.hasSuffix("(bad_event); 500 events before it are published\n"), "\(run.errors)")
        #expect(run.output.split(separator: "\n").count == 500)
        #expect(await reel("fetch", "todo").output.split(separator: "\n").count == 500)
    }

    @Test("a tail continues through another gateway") func continuesThroughAnotherGateway() async throws {
        let second = try cluster.startGateway("gateway-b")
        let tail = try ChildProcess(
            reelExecutable,
            ["tail", "todo", "--after", "-1", "--url", second.url, "--url", cluster.gateway.url],
            errorLog: cluster.folder.path + "/tail.log"
        )
        _ = await reel("publish", "todo", milk(0))
        #expect(try tail.readLine(timeoutMs: 60_000)?.hasPrefix(#"{"seq":0,"#) == true)
        second.process.killNow()
        _ = await reel("publish", "todo", milk(1))
        #expect(try tail.readLine(timeoutMs: 60_000)?.hasPrefix(#"{"seq":1,"#) == true)
        tail.killNow()
    }

    @Test("a tail continues through a gateway that its first gateway has named") func continuesThroughNamedGateway()
        async throws
    {
        let words = ["gateway", "--log", "sqlite:\(cluster.folder.path)/log.sqlite"]
        let second = try NodeProcess(words, in: cluster.folder, name: "gateway-b")
        try second.restart(adding: ["--advertise", second.url])
        let log = cluster.folder.path + "/tail.log"
        let port = try #require(UInt16(cluster.gateway.url.split(separator: ":").last ?? ""))
        try await eventually("the first one names it") {
            let client = try await RawClient.socket(port: port, hello: false)
            try await client.say(#"{"t":"hello","client":"raw/1"}"#)
            return (try await client.hear("welcome")["nodes"] as? [String])?.contains(second.url) == true
        }
        _ = await reel("publish", "todo", milk(0))
        let tail = try ChildProcess(
            reelExecutable,
            ["tail", "todo", "--after", "-1", "--url", cluster.gateway.url],
            errorLog: log
        )
        #expect(try tail.readLine(timeoutMs: 60_000)?.hasPrefix(#"{"seq":0,"#) == true)
        cluster.gateway.process.killNow()
        _ = await CommandRun(["publish", "todo", milk(1), "--url", second.url])
        #expect(try tail.readLine(timeoutMs: 60_000)?.hasPrefix(#"{"seq":1,"#) == true)
        let said = try String(contentsOfFile: log, encoding: .utf8)
        #expect(said.contains("continuing with \(second.url)"), "\(said)")
        tail.killNow()
    }

    @Test("the command line prints the outcome of an event on request") func printsOutcomes() async throws {
        _ = await reel("publish", "todo", milk(0))
        try await eventually("the gateway hears of the snapshot node") { await reel("streams").code == .done }
        let published = await reel("publish", "todo", milk(1), milk(2), "--outcome", isTerminal: true)
        #expect(published.code == .done, "\(published)")
        #expect(published.output == "seq 1: applied\nseq 2: applied\n")
        let update = #"{"type":"update","model":"task","id":"none"}"#
        let none = await reel("publish", "todo", update, "--outcome")
        #expect(none.code == .failed && none.output.contains(#""outcome":"rejected(no_object)""#), "\(none)")
        #expect(none.errors.contains("event 1: ") && none.errors.hasSuffix("(no_object)\n"), "\(none)")
        let mixed = await reel("publish", "todo", milk(4), update, "--outcome")
        #expect(mixed.code == .failed && mixed.errors.isEmpty, "one of two counts: \(mixed)")
        #expect(mixed.output.contains("applied") && mixed.output.contains("no_object"), "\(mixed)")

        let fetched = await reel("fetch", "todo", "--outcome", "--from", "3", "--to", "4")
        #expect(fetched.code == .done, "\(fetched)")
        let lines = fetched.output.split(separator: "\n")
        #expect(lines.first?.hasPrefix(#"{"seq":3,"outcome":"rejected(no_object)","#) == true, "\(fetched)")
        #expect(lines.last?.hasPrefix(#"{"seq":4,"outcome":"applied","#) == true, "\(fetched)")

        let tail = try ChildProcess(
            reelExecutable,
            ["tail", "todo", "--outcome", "--after", "2", "--url", cluster.gateway.url],
            errorLog: cluster.folder.path + "/tail.log"
        )
        defer { tail.killNow() }
        #expect(try tail.readLine(timeoutMs: 60_000)?.hasPrefix(#"{"seq":3,"outcome":"rejected(no_object)","#) == true)
        #expect(try tail.readLine(timeoutMs: 60_000)?.hasPrefix(#"{"seq":4,"outcome":"applied","#) == true)
        #expect(try tail.readLine(timeoutMs: 60_000)?.hasPrefix(#"{"seq":5,"outcome":"rejected(no_object)","#) == true)
        _ = await reel("publish", "todo", milk(5))
        #expect(try tail.readLine(timeoutMs: 60_000)?.hasPrefix(#"{"seq":6,"outcome":"applied","#) == true)
    }

    @Test("tail refuses an epoch that is not current, and epoch new names a missing log")
    func refusesWrongPlaces() async throws {
        let url = cluster.gateway.url
        let tail = await CommandRun(["tail", "todo", "--epoch", "0000000000000000", "--url", url])
        #expect(tail.code != .done && tail.errors.contains("(epoch_changed)"), "\(tail)")
        let log = "sqlite:\(cluster.folder.path)/none.sqlite"
        let none = await CommandRun(["epoch", "new", "--log", log])
        #expect(none.code == .failed && none.errors.contains("there is no log at `\(log)`"), "\(none)")
    }

    @Test("an event that is not applied makes publish fail, unless the outcome is not wanted or not known")
    func outcomesByDefault() async throws {
        let gap = { (op: Int) in EventText.sent("noop", "6f1c0000-0000-4000-8000-00000000000\(op)", op).text }
        try await eventually("the gateway hears of the snapshot node") { await reel("streams").code == .done }
        // On a busy machine the fold may take longer than the command waits.
        try await eventually("the outcome is told in time") {
            let run = await reel("publish", "todo", gap(5))
            let isKnown = run.output.contains("outcome")
            #expect(run.code == (isKnown ? .failed : .done), "\(run)")
            #expect(run.errors.contains(isKnown ? "(gap)" : "their outcomes are unknown"), "\(run)")
            return isKnown
        }
        let off = await reel("publish", "todo", gap(6), "--no-outcome")
        #expect(off.code == .done && !off.output.contains("outcome") && off.errors.isEmpty, "\(off)")
        #expect(await reel("publish", "todo", gap(7), "--outcome", "--no-outcome").code == .usage)

        let folder = try TemporaryFolder(prefix: "reel-alone-")
        let alone = try NodeProcess.gateway(in: folder)
        let unknown = await CommandRun(["publish", "todo", milk(0), "--url", alone.url])
        #expect(unknown.code == .done && !unknown.output.contains("outcome"), "\(unknown)")
        #expect(unknown.errors.hasPrefix("the events are durable; their outcomes are unknown: "), "\(unknown)")
        #expect(await CommandRun(["publish", "todo", milk(1), "--outcome", "--url", alone.url]).code == .unreachable)
    }

    @Test("a range is what the log has of it") func aRangeIsWhat() async throws {
        _ = await reel("publish", "todo", milk(0), milk(1))
        let beyond = await reel("fetch", "todo", "--from", "100")
        #expect(beyond.code == .done && beyond.output.isEmpty, "\(beyond)")
        #expect(beyond.errors.contains("no event of todo from seq 100 on") && beyond.errors.contains("ends at seq 1"))

        // This stream has no events, and is in the partition of a stream that has some.
        let partition = StreamName("todo")?.partition(of: 4)
        let names = (0...).lazy.map { "nosuch-\($0)" }
        let beside = try #require(names.first { StreamName($0)?.partition(of: 4) == partition })
        try await eventually("both are folded") { await reel("streams").output.contains("todo") }
        let nothing = await reel("fetch", beside)
        #expect(nothing.code == .done && nothing.output.isEmpty, "\(nothing)")
        #expect(nothing.errors.contains("0 events of \(beside) in 0…1 of epoch "), "\(nothing)")
        #expect(nothing.errors.hasPrefix("there is no stream \(beside) yet: "), "\(nothing)")

        let log = cluster.folder.path + "/log.sqlite"
        let tail = try ChildProcess(
            reelExecutable,
            ["tail", "todo", "--after", "-1", "--url", cluster.gateway.url],
            errorLog: cluster.folder.path + "/tail.log"
        )
        for seq in 0..<2 { #expect(try tail.readLine(timeoutMs: 60_000)?.hasPrefix(#"{"seq":\#(seq),"#) == true) }
        #expect(await CommandRun(["epoch", "new", "--log", "sqlite:\(log)"]).code == .done)
        // The tail prints the end of the epoch, and then the events after the state in the next epoch.
        #expect(try tail.readLine(timeoutMs: 60_000)?.contains(#""type":"barrier""#) == true)
        try await eventually("the gateway goes over") {
            let run = await reel("fetch", "todo")
            return run.code == .done && !run.output.contains(#""seq":0"#)
        }
        let published = await reel("publish", "todo", milk(2), "--json")
        #expect(published.code == .done, "\(published)")
        let all = await reel("fetch", "todo")
        #expect(all.code == .done && all.output.contains("Milk 2"), "\(all)")
        var line = try tail.readLine(timeoutMs: 60_000)
        if line?.contains("barrier") == true { line = try tail.readLine(timeoutMs: 60_000) }
        #expect(line?.contains("Milk 2") == true)
        tail.killNow()
    }

    /// `script` runs the program on a terminal.
    @Test("the command line states on a terminal what it waits for and how to end it") func explainsTerminalInput()
        async throws
    {
        guard try await Shell.has("command -v script", "script: apt-get install bsdutils") else { return }
        let words = "--url \(cluster.gateway.url)"
        let publish = "'\(reelExecutable)' publish todo \(words)"
        let typed = try await Shell.run(#"script -qec "\#(publish)" /dev/null < /dev/null"#)
        #expect(typed.output.contains("reading events from standard input, Ctrl-D ends them"), "\(typed)")
        let piped = try await Shell.run("\(publish) < /dev/null")
        #expect(piped.code == ExitCode.usage.rawValue && !piped.errors.contains("Ctrl-D"), "\(piped)")
        _ = await reel("publish", "todo", milk(0))
        let tail = try ChildProcess(
            "/bin/bash",
            ["-c", #"exec script -qec "'\#(reelExecutable)' tail todo --after -1 \#(words)" /dev/null < /dev/null"#],
            errorLog: cluster.folder.path + "/tail.log"
        )
        #expect(try tail.readLine(timeoutMs: 60_000)?.hasPrefix("following todo from seq 0, Ctrl-C ends it") == true)
        #expect(try tail.readLine(timeoutMs: 60_000)?.hasPrefix("0  insert task/0 ") == true)
        tail.killNow()
    }

    @Test("a node that is gone keeps no other from being compared") func aNodeThatIsGone() async throws {
        _ = await reel("publish", "todo", milk(0))
        try await cluster.snapshotReaches(0)
        let dead = "http://127.0.0.1:1"
        try await eventually("the gateway's digest") {
            let run = await CommandRun(["digest", "todo", "--url", dead, "--url", cluster.gateway.url])
            #expect(run.code == .unreachable && run.errors.contains(dead), "\(run)")
            let verdict = ", computed from its lines: the same\n"
            return run.output.hasPrefix(cluster.gateway.url) && run.output.hasSuffix(verdict)
        }
    }

    @Test("a session is replayed through two gateways") func aSessionIsReplayed() async throws {
        let second = try cluster.startGateway("gateway-b")
        let edits = [(0, "[]", 0, "a"), (1, "[]", 0, "x"), (0, "[0]", 1, "b"), (1, "[1]", 1, "y")].map {
            #"{"agent":\#($0.0),"parents":\#($0.1),"patches":[[\#($0.2),0,"\#($0.3)"]]}"#
        }
        let file = cluster.folder.path + "/session.json"
        let session = #"{"endContent":"xyab","txns":[\#(edits.joined(separator: ","))]}"#
        try Data(session.utf8).write(to: URL(filePath: file))
        try await eventually("the gateway hears of the snapshot node") { await reel("streams").code == .done }
        let run = await reel("replay", file, "--json", "--url", second.url)
        #expect(run.code == .done, "\(run.errors)\(run.output)")
        #expect(run.output.contains(#""right":true"#))
    }

    @Test("the streams are listed as a table, and as lines of JSON over several pages")
    func listed() async throws {
        _ = await reel("publish", "todo", milk(0), milk(1))
        _ = await reel("publish", "notes", milk(0))
        try await eventually("both are folded") {
            await reel("streams", "--json").output.split(separator: "\n").count == 2
        }
        let table = await reel("streams", isTerminal: true)
        let rows = table.output.split(separator: "\n").map { $0.split(separator: " ", omittingEmptySubsequences: true) }
        #expect(table.code == .done && rows.count == 3, "\(table)")
        #expect(rows[0] == ["NAME", "PARTITION", "OBJECTS", "SITES", "BYTES", "LAST"])
        #expect(rows[1][0] == "notes" && rows[1][2] == "1" && rows[1][5] == "seq" && rows[1].last == "ago", "\(table)")
        #expect(rows[2][0] == "todo" && rows[2][2] == "2", "\(table)")
        let json = await reel("streams", "to", "--json")
        #expect(json.output.hasPrefix(#"{"stream":"todo","partition":"#), "\(json)")
        #expect(json.output.split(separator: "\n").count == 1)
        let none = await reel("streams", "x")
        #expect(none.code == .done && none.output.isEmpty, "\(none)")
        #expect(none.errors == "there is no stream whose name begins with x\n")
        for bad in ["a b", "\u{1B}[0m", "~reel"] {
            let run = await reel("streams", bad)
            #expect(run.code == .usage && run.errors.contains("no stream's name begins with"), "\(run)")
        }
    }

    @Test("tail of a missing stream reports it, suggests the nearest name, and waits for the first event")
    func missingTail() async throws {
        _ = await reel("publish", "todo", milk(0))
        try await eventually("it is folded") { await reel("streams").output.contains("todo") }
        let log = cluster.folder.path + "/tail.log"
        let tail = try ChildProcess(
            reelExecutable,
            ["tail", "tdoo", "--after", "-1", "--url", cluster.gateway.url],
            errorLog: log
        )
        defer { tail.killNow() }
        try await eventually("the tail says so") {
            try String(contentsOfFile: log, encoding: .utf8).contains(
                "there is no stream tdoo yet: no event was ever published to it; did you mean todo?; waiting for its first"
            )
        }
        _ = await reel("publish", "tdoo", milk(1))
        #expect(try tail.readLine(timeoutMs: 60_000)?.contains("Milk 1") == true)
        let digest = await reel("digest", "tdo")
        #expect(digest.code == .done && digest.errors.contains("there is no stream tdo yet"), "\(digest)")
    }

    @Test("the cluster has one line for each node, and with --by-partition one for each partition")
    func clusterTable() async throws {
        _ = await reel("publish", "todo", milk(0))
        try await eventually("both nodes are ready and nothing lags") {
            let run = await reel("cluster")
            let lines = run.output.split(separator: "\n").map(String.init)
            #expect(run.code == .done, "\(run)")
            return lines.count == 3 && lines[0].hasPrefix("ROLE ") && lines[1].hasPrefix("gateway ")
                && lines[2].hasPrefix("snapshot ")
                && lines.dropFirst().allSatisfy {
                    let cells = $0.split(separator: " ").map(String.init)
                    return cells[2] == "ready" && cells[7] == "4" && cells[8] == "0"
                }
        }
        let log = ["cluster", "--log", "sqlite:\(cluster.folder.path)/log.sqlite"]
        let run = await CommandRun(log + ["--by-partition"])
        #expect(run.code == .done && run.output.split(separator: "\n").count == 9, "\(run)")
        let again = try cluster.startGateway("gateway-b")
        try await eventually("it has announced itself") { await reel("cluster").output.contains(again.url) }
        cluster.snapshot.process.killNow()
        again.process.killNow()
        try await eventually("both are called dead, and come last") {
            let lines = await reel("cluster").output.split(separator: "\n").map(String.init)
            return lines.count == 4 && lines[2].contains(" dead ") && lines[3].contains(" dead ")
        }
    }

    @Test("a node that is not there is named") func aNodeThatIsNot() async throws {
        let port = try HeldPort()
        let url = "http://127.0.0.1:\(port.number)"
        let run = await CommandRun(["fetch", "todo", "--url", url])
        #expect(run.code == .unreachable)
        #expect(run.errors.contains(url))
        #expect(await CommandRun(["tail", "todo", "--url", url]).code == .unreachable)
        #expect(await CommandRun(["tail", "todo", "--after", "3", "--url", url]).code == .unreachable)
        withExtendedLifetime(port) {}
        #expect(await CommandRun(["fetch", "todo", "--url", "ftp://a.example"]).code == .usage)
    }
}

/// A gateway and a snapshot node on one SQLite log.
private struct LocalCluster {
    let folder: TemporaryFolder
    let gateway: LocalNode
    let snapshot: LocalNode

    init() throws {
        folder = try TemporaryFolder(prefix: "reel-nodes-")
        gateway = try Self.start("gateway", "gateway-a", folder)
        snapshot = try Self.start("snapshot", "snapshot-a", folder)
    }

    func startGateway(_ name: String) throws -> LocalNode {
        try Self.start("gateway", name, folder)
    }

    /// Returns once the snapshot node has folded this seq of `todo`.
    func snapshotReaches(_ seq: Int) async throws {
        try await eventually("the snapshot node has folded seq \(seq)") {
            let head = await CommandRun(["digest", "todo", "--json", "--url", gateway.url]).output
            return head.contains(#""seq":\#(seq),"#)
        }
    }

    private static func start(_ role: String, _ name: String, _ folder: TemporaryFolder) throws -> LocalNode {
        let log = "sqlite:\(folder.path)/log.sqlite"
        // With one loop, a connection can read every event that another connection has got an ack for.
        let arguments = [
            role, "--log", log, "--data", "\(folder.path)/\(name)", "--loops", "1", "--handshake-ms", "600000",
        ]
        return try LocalNode(name: name, reel: reelExecutable, arguments: arguments, folder: folder.path)
    }
}

/// The program, which the build puts beside the tests.
private let reelExecutable = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
    .appending(path: "reel").path
