import Testing

@testable import ReelTool

/// Tests that one table defines the command line, and that an error helps to correct the mistake.
@Suite struct ArgumentTests {
    private static let listen = Setting<String>.text("listen", "HOST:PORT", default: "127.0.0.1:7350", "the address")
    private static let partitions = Setting<Int>.number("partitions", "N", 1...1024, default: 4, "how many")
    private static let after = Setting<Int?>.number("after", "SEQ", -1 ... .max, "the last seq held")
    private static let url = Setting<[String]>.texts("url", "URL", "a node")
    private static let json = Setting<Bool>.flag("json", "JSON")
    private static let play = Command(
        "play",
        "play a tape",
        about: "It plays.",
        operands: [Operand("FILE"), Operand("OTHER", .optional)],
        settings: [listen, partitions, after, url, json],
        examples: [Example("reel play tape", "plays it")]
    ) { _, _ in .done }
    private static let many = Command(
        "many",
        "many files",
        about: "",
        operands: [Operand("FILE", .several)],
        examples: []
    ) { _, _ in .done }

    private static let family = SettingFamily(
        "tone.NAME",
        "VALUE",
        ["tone.treble", "tone.low.bass"].map { Setting<String?>.text($0, "DB", "a tone") }.map(Tone.init),
        "a tone"
    )
    private static let paint = Command("paint wall", "paint", about: "", settings: [family], examples: []) { _, _ in
        .done
    }

    /// A setting of a family that accepts whole numbers only.
    private struct Tone: AnySetting {
        let setting: Setting<String?>
        var name: String { setting.name }
        var valueName: String? { setting.valueName }
        var fallbackText: String? { nil }
        var repeats: Bool { false }
        var help: String { setting.help }
        var expected: String { "a number" }
        func value(of texts: [String]) -> (any Sendable)? { texts.last.flatMap { Int($0) == nil ? nil : $0 } }
    }

    private func options(_ words: [String], _ environment: [String: String] = [:]) throws -> Options {
        let parser = ArgumentParser(commands: [Self.play, Self.many, Self.paint], environment: environment)
        guard case .run(_, let options) = try parser.request(words) else {
            throw CommandError(.failed, "no command was asked for")
        }
        return options
    }

    private func complaint(_ words: [String], _ environment: [String: String] = [:]) -> String {
        do {
            _ = try options(words, environment)
            return "none"
        } catch {
            let complaint = CommandError(error)
            guard complaint.code == .usage else { return "not a usage error" }
            return complaint.message + (complaint.usage.map { "\n\($0)" } ?? "")
        }
    }

    @Test("settings come from the command line else the environment else the default") func settingsComeFromThe() throws
    {
        let bare = try options(["play", "tape"])
        #expect(bare[Self.listen] == "127.0.0.1:7350")
        #expect(bare[Self.after] == nil)
        #expect(bare[Self.json] == false)
        let environment = ["REEL_LISTEN": "[::]:1", "REEL_JSON": "true", "REEL_URL": "http://a,http://b"]
        let both = try options(["play", "tape", "--listen", "[::]:2"], environment)
        #expect(both[Self.listen] == "[::]:2")
        #expect(both[Self.json])
        #expect(both[Self.url] == ["http://a", "http://b"])
    }

    @Test("both ways to write a value are the same") func bothWaysToWrite() throws {
        #expect(try options(["play", "tape", "--after=-1"])[Self.after] == -1)
        #expect(try options(["play", "--after", "-1", "tape"])[Self.after] == -1)
        #expect(try options(["play", "tape", "--url", "a", "--url=b"])[Self.url] == ["a", "b"])
    }

    @Test("two dashes end the settings") func twoDashesEndThe() throws {
        #expect(try options(["play", "--json", "--", "--listen"]).operands == ["--listen"])
    }

    @Test("an unknown name names the nearest") func anUnknownNameNames() {
        #expect(complaint(["play", "tape", "--listne", "x"]).contains("did you mean --listen?"))
        #expect(complaint(["plya", "tape"]).contains("did you mean `play`?"))
        #expect(!complaint(["play", "tape", "--zzzzz"]).contains("did you mean"))
    }

    @Test(
        "the parser names the mistake in wrong arguments",
        arguments: [
            (["play", "tape", "--partitions", "0"], "a whole number from 1 to 1024"),
            (["play", "tape", "--partitions", "four"], "`four`"),
            (["play", "tape", "--partitions", "--json"], "--partitions needs a value"),
            (["play", "tape", "--after"], "--after needs a value"),
            (["play", "tape", "--json=1"], "takes no value"),
            (["play", "tape", "--json", "--json"], "given twice"),
            (["play", "tape", "--url="], "--url is ``"),
            (["play"], "FILE is missing"),
            (["many"], "FILE is missing"),
            (["play", "a", "b", "c"], "`c` is one operand too many"),
        ]
    ) func namesMistake(words: [String], says: String) {
        #expect(complaint(words).contains(says), "\(complaint(words))")
    }

    @Test("a bad variable is named as the variable") func aBadVariableIs() {
        #expect(complaint(["play", "tape"], ["REEL_PARTITIONS": "x"]).contains("REEL_PARTITIONS is `x`"))
        #expect(complaint(["play", "tape"], ["REEL_JSON": "yes"]).contains("1, true, 0 or false"))
    }

    @Test("an empty variable is no variable that is unset") func anEmptyVariableIs() throws {
        for (variable, expected) in [
            ("REEL_LISTEN", "HOST:PORT"), ("REEL_PARTITIONS", "a whole number from 1 to 1024"), ("REEL_URL", "URL"),
            ("REEL_JSON", "1, true, 0 or false"),
        ] {
            let says = "\(variable) is set, but empty; expected is \(expected): give it a value, or unset it\n"
            #expect(complaint(["play", "tape"], [variable: ""]).hasPrefix(says))
        }
        // The command line takes precedence. A variable for a setting that the command does not have is ignored.
        #expect(try options(["play", "tape", "--listen", "[::]:2"], ["REEL_LISTEN": ""])[Self.listen] == "[::]:2")
        #expect(try options(["play", "tape"], ["REEL_DATA": ""])[Self.listen] == "127.0.0.1:7350")
    }

    @Test("an unknown variable is a warning") func anUnknownVariableIs() {
        let environment = [
            "REEL_LISTN": "x", "REEL_SEED": "1", "REEL_EFFORT": "1", "REEL_TRACES": "t", "REEL_JSON": "1",
        ]
        let parser = ArgumentParser(commands: [Self.play], environment: environment)
        #expect(parser.warnings() == ["the variable REEL_LISTN is not a setting of reel, did you mean REEL_LISTEN?"])
    }

    @Test("the members of a family are settings like others") func theMembersOfA() throws {
        let environment = ["REEL_TONE_LOW_BASS": "7", "REEL_TONE_TREBLE": "8"]
        for words in [["--tone.treble=2"], ["--tone.treble", "2"]] {
            let tones = try options(["paint", "wall"] + words, environment)[Self.family]
            #expect(tones.map(\.member.name) == ["tone.treble", "tone.low.bass"])
            #expect(tones.map(\.value) == ["2", "7"])
        }
        #expect(complaint(["paint", "wall", "--tone.trebel=2"]).contains("did you mean --tone.treble?"))
        #expect(complaint(["paint", "wall"], ["REEL_TONE_TREBLE": "x"]).contains("REEL_TONE_TREBLE is `x`"))
        let parser = ArgumentParser(commands: [Self.paint], environment: ["REEL_TONE_TREBEL": "1"])
        #expect(parser.warnings().first?.contains("did you mean REEL_TONE_TREBLE?") == true)
    }

    @Test(
        "a command of two words is named by both",
        arguments: [
            (["paint"], "`reel paint` needs one more word: wall"),
            (["paint", "wal"], "did you mean `paint wall`?"),
            (["pain", "wall"], "did you mean `paint`?"),
        ]
    ) func aCommandOfTwo(words: [String], says: String) {
        #expect(complaint(words).contains(says), "\(complaint(words))")
    }

    @Test("the parser lists the commands for --help after the first word of a two-word command")
    func listsTwoWordCommands() throws {
        let parser = ArgumentParser(commands: [Self.play, Self.paint], environment: [:])
        guard case .overview(let commands) = try parser.request(["paint", "--help"]) else {
            Issue.record("no list of commands")
            return
        }
        #expect(commands.map(\.name) == ["paint wall"])
    }

    @Test("the parser finds --help after any command") func findsHelp() throws {
        let parser = ArgumentParser(commands: [Self.play], environment: [:])
        for words in [["play", "--help"], ["play", "-h"], ["play", "--partitions", "x", "--help"]] {
            guard case .help(let command) = try parser.request(words) else {
                Issue.record("\(words) asks for help")
                continue
            }
            #expect(command.name == "play")
        }
    }
}
