import Testing

@testable import reel

/// The command line is read against one table, and what is wrong is said with what helps.
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

    private func options(_ words: [String], _ environment: [String: String] = [:]) throws -> Options {
        let parser = ArgumentParser(commands: [Self.play, Self.many], environment: environment)
        guard case .run(_, let options) = try parser.request(words) else {
            throw Complaint(.failed, "no command was asked for")
        }
        return options
    }

    private func complaint(_ words: [String], _ environment: [String: String] = [:]) -> String {
        do {
            _ = try options(words, environment)
            return "none"
        } catch {
            return Complaint(error).code == .usage ? Complaint(error).message : "not a usage error"
        }
    }

    @Test func settingsComeFromTheCommandLineElseTheEnvironmentElseTheDefault() throws {
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

    @Test func bothWaysToWriteAValueAreTheSame() throws {
        #expect(try options(["play", "tape", "--after=-1"])[Self.after] == -1)
        #expect(try options(["play", "--after", "-1", "tape"])[Self.after] == -1)
        #expect(try options(["play", "tape", "--url", "a", "--url=b"])[Self.url] == ["a", "b"])
    }

    @Test func twoDashesEndTheSettings() throws {
        #expect(try options(["play", "--json", "--", "--listen"]).operands == ["--listen"])
    }

    @Test func anUnknownNameNamesTheNearest() {
        #expect(complaint(["play", "tape", "--listne", "x"]).contains("did you mean --listen?"))
        #expect(complaint(["plya", "tape"]).contains("did you mean `play`?"))
        #expect(!complaint(["play", "tape", "--zzzzz"]).contains("did you mean"))
    }

    @Test(arguments: [
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
    ]) func whatIsWrongIsSaid(words: [String], says: String) {
        #expect(complaint(words).contains(says), "\(complaint(words))")
    }

    @Test func aBadVariableIsNamedAsTheVariable() {
        #expect(complaint(["play", "tape"], ["REEL_PARTITIONS": "x"]).contains("REEL_PARTITIONS is `x`"))
        #expect(complaint(["play", "tape"], ["REEL_JSON": "yes"]).contains("1, true, 0 or false"))
    }

    @Test func anUnknownVariableIsAWarning() {
        let environment = [
            "REEL_LISTN": "x", "REEL_SEED": "1", "REEL_EFFORT": "1", "REEL_TRACES": "t", "REEL_JSON": "1",
        ]
        let parser = ArgumentParser(commands: [Self.play], environment: environment)
        #expect(parser.warnings() == ["the variable REEL_LISTN is no setting of reel, did you mean REEL_LISTEN?"])
    }

    @Test func helpIsFoundBehindAnyCommand() throws {
        let parser = ArgumentParser(commands: [Self.play], environment: [:])
        for words in [["play", "--help"], ["play", "-h"], ["play", "--partitions", "x", "--help"]] {
            guard case .help(let command?) = try parser.request(words) else {
                Issue.record("\(words) asks for help")
                continue
            }
            #expect(command.name == "play")
        }
    }
}
