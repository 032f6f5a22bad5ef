import Foundation
import ReelCore
import ReelLab
import ReelLog
import Testing

@testable import ReelTool

/// Tests `reel site retire` on a log without nodes.
@Suite struct SiteRetireCommandTests {
    private let folder: TemporaryFolder
    private let sites: SiteLog

    init() throws {
        folder = try TemporaryFolder(prefix: "reel-sites-")
        sites = SiteLog(folder.path + "/log.sqlite")
    }

    private func list(_ words: String...) async -> CommandRun {
        await CommandRun(["site", "list", "todo", "--log", "sqlite:\(sites.path)"] + words)
    }

    private func retire(_ idle: Int, _ words: String..., stream: String = "todo") async -> CommandRun {
        let place = ["--log", "sqlite:\(sites.path)", "--idle-events", "\(idle)"]
        return await CommandRun(["site", "retire", stream] + place + words)
    }

    /// Creates ten sites that wrote once each, at the seqs 0 to 9.
    private func makeTen() async throws {
        try await sites.append((0..<10).map { SiteLog.event(site: $0, op: 0, base: Seq($0) - 1) })
    }

    @Test("a dry run shows which sites would end, and writes nothing")
    func dryRun() async throws {
        try await makeTen()
        let run = await retire(4, "--dry-run")
        #expect(run.code == .done, "\(run)")
        #expect(run.output.contains("would end: 6 sites without an event after seq 5\n"), "\(run)")
        #expect(run.output.contains("the most idle: \(SiteLog.site(0)) of u0, 9 records ago, "), "\(run)")
        #expect(run.output.contains("the least idle: \(SiteLog.site(5)) of u5, 4 records ago, "), "\(run)")
        #expect(run.output.hasSuffix("left: 4 of 100000 sites\nnothing was written\n"), "\(run)")
        #expect(run.output.components(separatedBy: "00000000-0000-4000-8000-0000000000").count == 6 + 2 + 1, "\(run)")
        #expect(try sites.last == 9)
    }

    @Test("idle sites end with one record, the others continue, and a second run finds nothing to retire")
    func retired() async throws {
        try await makeTen()
        let run = await retire(4)
        #expect(run.code == .done, "\(run)")
        #expect(run.output.contains("ending: 6 sites without an event after seq 5\n"), "\(run)")
        #expect(run.output.contains("left: 4 of 100000 sites\nwritten at seq 10: "), "\(run)")
        #expect(try sites.last == 10)
        #expect(try sites.value(at: 10) == #"{"retire":{"before":5,"stream":"todo"},"type":"barrier"}"#)

        let living = await list()
        #expect(
            living.output.hasPrefix("todo: 4 of 100000 sites, 6 ended and not forgotten; as of seq 10 "),
            "\(living)"
        )
        let ended = await list("--ended", "--json")
        #expect(ended.output.split(separator: "\n").allSatisfy { $0.contains(#""end":10,"#) }, "\(ended)")
        #expect(ended.output.split(separator: "\n").count == 6)

        let again = await retire(5)
        #expect(again.code == .done, "\(again)")
        let nothing =
            "nothing to retire: no site has been idle for 5 records of the partition; the most idle one published 4"
        #expect(again.output.contains(nothing + " records ago\n"), "\(again)")
        #expect(try sites.last == 10)
    }

    @Test("site retire with a number beyond the start of the log retires nothing and reports it")
    func belowTheLog() async throws {
        try await makeTen()
        for idle in [10, 1_000_000, 1 << 53 - 1] {
            let run = await retire(idle)
            #expect(run.code == .done && run.output.contains("nothing to retire: "), "\(run)")
            #expect(run.output.contains("the most idle one published 9 records ago"), "\(run)")
        }
        #expect(try sites.last == 9)
    }

    @Test("a number that would leave no site is refused, with the numbers that would")
    func leavesNone() async throws {
        try await makeTen()
        try await sites.append(["void", "void"])
        for words in [[], ["--dry-run"]] {
            let run = await CommandRun(
                ["site", "retire", "todo", "--log", "sqlite:\(sites.path)", "--idle-events", "2"] + words
            )
            #expect(run.code == .usage, "\(run)")
            #expect(
                run.errors.contains("would end all 10 sites of todo; expected is a number that leaves one, more than 2")
            )
        }
        #expect(try sites.last == 11)
        #expect(await retire(3).code == .done)
    }

    @Test("site retire names a stream without events and an invalid stream name")
    func noStream() async throws {
        try await makeTen()
        let run = await retire(4, stream: "tudo")
        #expect(run.code == .failed && run.errors.contains("found no sites of stream tudo in partition 0 up to seq 9"))
        let listed = await CommandRun(["site", "list", "tudo", "--log", "sqlite:\(sites.path)"])
        #expect(listed.code == .failed && listed.errors.contains("found no sites of stream tudo"), "\(listed)")
        let wrong = await retire(4, stream: "~todo")
        #expect(wrong.code == .usage && wrong.errors.contains("`~todo` is not a name of a stream"), "\(wrong)")
        #expect(try sites.last == 9)
    }

    @Test("where there is no log, or no number, nothing is done")
    func noLog() async throws {
        let run = await retire(4)
        #expect(run.code == .failed && run.errors.contains("there is no log at `\(sites.path)`"), "\(run)")
        #expect(!FileManager.default.fileExists(atPath: sites.path))
        let missing = await CommandRun(["site", "retire", "todo", "--log", "sqlite:\(sites.path)"])
        #expect(missing.code == .usage && missing.errors.contains("--idle-events"), "\(missing)")
        for idle in ["0", "-1", "x"] {
            let wrong = await CommandRun(["site", "retire", "todo", "--idle-events", idle])
            #expect(wrong.code == .usage, "\(wrong)")
        }
    }

    @Test("an epoch that has ended takes no barrier")
    func ended() async throws {
        try await makeTen()
        try await sites.append([#"{"end":"00000000000000bb","type":"barrier"}"#], key: "~reel")
        let run = await retire(4)
        #expect(run.code == .failed && run.errors.contains("has ended, and the next one is 00000000000000bb"), "\(run)")
        #expect(try sites.last == 10)
    }

    @Test("a barrier unknown to this version stops site list and site retire with an error")
    func unknownBarrier() async throws {
        try await makeTen()
        let value = #"{"retire":{"before":5,"more":1,"stream":"todo"},"type":"barrier"}"#
        try await sites.append([value], key: "~reel")
        for run in [await retire(4), await list()] {
            #expect(run.code == .failed, "\(run)")
            #expect(run.errors.contains("found a barrier at seq 10 of partition 0 that this version does not know"))
        }
        #expect(try sites.last == 10)
    }
}
