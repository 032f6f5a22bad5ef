import Foundation
import ReelCore
import ReelLab
import ReelLog
import ReelNet
import Synchronization
import TestSupport
import Testing

@testable import ReelTool

/// Tests the output and the exit codes of the program without a process of its own.
@Suite struct CommandLineTests {
    @Test("alone it shows what there is") func aloneItShowsWhat() async {
        let run = await CommandRun([])
        #expect(run.code == .usage)
        for command in CommandTable.all { #expect(run.output.contains("  \(command.name) ")) }
    }

    @Test("version is one line or one object") func versionIsOneLine() async throws {
        #expect(await CommandRun(["version"]).output.hasPrefix("reel \(Version.number)"))
        let json = try JSONSerialization.jsonObject(with: Data(await CommandRun(["--version", "--json"]).output.utf8))
        #expect((json as? [String: Any])?["version"] as? String == Version.number)
        #expect((json as? [String: Any])?["commit"] as? String == "unknown", "no linker knows it")
    }

    @Test("a program names the commit that it was stamped with, and no other")
    func stampedProgram() async throws {
        let folder = try TemporaryFolder(prefix: "reel-stamp-")
        let program = folder.path + "/reel"
        try FileManager.default.copyItem(atPath: BuiltProgram.path, toPath: program)
        #expect(Version.commit(ofProgram: program) == nil)
        let commit = String(repeating: "0a1b2", count: 8)
        for stamp in [commit, commit + "-dirty"] {
            let run = try await Shell.run("deploy/stamp '\(program)' \(stamp) && '\(program)' --version")
            #expect(run.code == 0 && run.output.contains(", commit \(stamp), "), "\(run)")
        }
        for stamp in ["", "main", commit + "0", commit.uppercased(), "-dirty"] {
            _ = try await Shell.run("deploy/stamp '\(program)' '\(stamp)'")
            #expect(Version.commit(ofProgram: program) == nil, "\(stamp)")
        }
        try Data("short".utf8).write(to: URL(filePath: program))
        #expect(Version.commit(ofProgram: program) == nil)
    }

    @Test("a mistake exits with code 2 and a suggestion") func suggestsCommand() async {
        let run = await CommandRun(["versoin"])
        #expect(run.code == .usage)
        #expect(run.errors.hasPrefix("reel: there is no command `versoin`; did you mean `version`?"))
        #expect(run.output.isEmpty)
    }

    @Test("the command line suggests another port when the user may not open one") func suggestsAnotherPort() {
        let complaint = CommandError(NetError(.permissionDenied, "listening on 127.0.0.1:80: permission denied"))
        #expect(complaint.code == .failed)
        #expect(complaint.message.hasSuffix("need root or CAP_NET_BIND_SERVICE: choose another with --listen"))
    }

    @Test("an unknown variable warns and the command runs") func anUnknownVariableWarns() async {
        let run = await CommandRun(["version"], environment: ["REEL_JSN": "1"])
        #expect(run.code == .done)
        #expect(run.errors.contains("did you mean REEL_JSON?"))
    }

    @Test("every command has help with examples") func everyCommandHasHelp() async {
        for command in CommandTable.all {
            let run = await CommandRun(command.words + ["--help"])
            #expect(run.code == .done)
            #expect(!command.examples.isEmpty, "\(command.name)")
            #expect(command.examples.allSatisfy { run.output.contains($0.line) }, "\(command.name)")
        }
    }

    @Test("a word that several commands begin with has help too") func aWordThatSeveral() async {
        for words in [["topic", "--help"], ["help", "topic"]] {
            let run = await CommandRun(words)
            #expect(run.code == .done && run.output.contains("  topic check  "), "\(run)")
            #expect(!run.output.contains("epoch new"))
        }
    }

    @Test("every line of help fits a terminal") func everyLineOfHelp() async {
        for command in CommandTable.all {
            for line in await CommandRun(["help"] + command.words).output.split(separator: "\n") {
                #expect(line.count <= 120, "\(line)")
            }
        }
    }

    /// The settings that a command describes with a sentence of its own, because it uses them differently.
    static let ownSentences = [
        ("token issue", "jwks", "sign with a key of this file"), ("token issue", "kid", "sign with the key"),
        ("token issue", "token-issuer", "write this `iss`"), ("token issue", "token-audience", "write this `aud`"),
        ("token inspect", "jwks", "verify it with"), ("fold", "partitions", "default: the fewest"),
        ("doctor", "log", "also ask this log itself"), ("cluster", "log", "ask this log instead of a node"),
        ("dump", "data", "folder with log.sqlite"),
        ("epoch new", "data", "folder with log.sqlite"),
        ("epoch new", "partitions", "default: as many as the old one"),
        ("log accept", "data", "folder with log.sqlite"),
        ("site list", "log", "fold this log instead of asking a node"),
        ("site retire", "data", "folder with log.sqlite"),
        ("site retire", "url", "read the sites from this node instead"),
    ]

    @Test("a name is the same setting everywhere") func aNameIsThe() {
        var helps: [String: String] = [:]
        for command in CommandTable.all {
            for setting in command.settings
            where !Self.ownSentences.contains(where: { ($0.0, $0.1) == (command.name, setting.name) }) {
                #expect(
                    helps[setting.name, default: setting.help] == setting.help,
                    "--\(setting.name) means two things"
                )
                helps[setting.name] = setting.help
            }
        }
        #expect(Set(CommandTable.all.map(\.name)).count == CommandTable.all.count)
    }

    @Test("a setting is explained as the command uses it", arguments: ownSentences)
    func aSettingIsExplained(command: String, setting: String, says: String) async {
        let words = ["help"] + command.split(separator: " ").map(String.init)
        let lines = await CommandRun(words).output.split(separator: "\n").filter { $0.hasPrefix("  --\(setting) ") }
        #expect(lines.count == 1 && lines.allSatisfy { $0.contains(says) }, "\(lines)")
        #expect(!lines.contains { $0.contains("(default log.sqlite") }, "`\(command)` looks at no log by default")
    }

    @Test("a lasting log error exits as failed, not as unreachable") func lastingErrorFails() {
        var error = LogError(.logUnavailable, "cannot write x: Permission denied")
        #expect(CommandError(error).code == .unreachable)
        error.isLasting = true
        #expect(CommandError(error) == CommandError(.failed, "cannot write x: Permission denied (log_unavailable)"))
    }

    @Test("a setting that a command cannot do without is marked and missed") func aSettingThatA() async {
        for command in CommandTable.all {
            let settings = command.settings.filter { command.required.contains($0.name) }
            #expect(settings.count == command.required.count, "\(command.name)")
            let help = await CommandRun(["help"] + command.words).output.split(separator: "\n")
            #expect(help.count { $0.contains("(required") } == settings.count, "\(command.name)")
            for missing in settings {
                let others = settings.filter { $0.name != missing.name }.flatMap { ["--" + $0.name, "x"] }
                let operands = command.operands.filter { $0.count == .one }.map { _ in "x" }
                let run = await CommandRun(command.words + operands + others)
                #expect(run.code == .usage && run.errors.contains("--\(missing.name) is "), "\(run)")
            }
        }
        let required = CommandTable.all.filter { !$0.required.isEmpty }.map(\.name).sorted()
        #expect(
            required == ["site retire", "token inspect", "token issue", "topic check", "topic create", "topic show"]
        )
    }

    @Test("a range that ends before it begins is a mistake") func aRangeThatEnds() async {
        let run = await CommandRun(["fetch", "todo", "--from", "4", "--to", "2"])
        #expect(run.code == .usage && run.errors == "reel: --to is 2, below --from 4\n", "\(run)")
    }

    @Test("the command line prints the whole rule for an invalid stream name", arguments: ["a b", "~a", ".."])
    func printsStreamNameRule(
        _ name: String
    ) async {
        let says = "`\(name)` is not a name of a stream; expected are 1 to 128 of A-Z a-z 0-9 . _ : ~ -,"
        for words in [["fetch", name], ["fold", "/dev/null", "--stream", name], ["load", "--stream", name]] {
            let run = await CommandRun(words)
            #expect(run.code == .usage && run.errors.contains(says), "\(run)")
            #expect(run.errors.contains("not of dots only, not with ~ in front"), "\(run)")
        }
    }

    @Test("a command exits without a message when its output has no reader") func exitsWithoutReader() async throws {
        let folder = try TemporaryFolder(prefix: "reel-pipe-")
        let pipe = "'\(folder.path)/pipe'"
        let nobody = "mkfifo \(pipe); exec 3<>\(pipe) 4>\(pipe) 3>&-; exec >&4;"
        let run = try await BuiltProgram.run(["help", "--markdown"], shell: nobody)
        #expect(run.code == ExitCode.failed.rawValue && run.errors.isEmpty, "\(run)")
    }

    @Test("the page of the command line is up to date") func thePageOfThe() async throws {
        let page = try String(contentsOf: repository.appending(path: "docs/reference/cli.md"), encoding: .utf8)
        #expect(
            await CommandRun(["help", "--markdown"]).output == page,
            "run: reel help --markdown > docs/reference/cli.md"
        )
    }
}

/// The root folder of the repository.
let repository = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

/// A run of the command line in this process, with its output.
struct CommandRun {
    let code: ExitCode
    let output: String
    let errors: String

    init(_ words: [String], environment: [String: String] = [:], isTerminal: Bool = false) async {
        let said = Said()
        let console = Console(isTerminal: isTerminal) { channel, bytes in
            said.texts.withLock { $0[channel, default: []] += bytes }
        }
        code = await CommandLineTool.run(words, environment: environment, console: console)
        let texts = said.texts.withLock { $0 }
        output = String(decoding: texts[.output] ?? [], as: UTF8.self)
        errors = String(decoding: texts[.error] ?? [], as: UTF8.self)
    }

    private final class Said: Sendable {
        let texts = Mutex<[Console.Channel: [UInt8]]>([:])
    }
}
