import Testing

/// Checks that each rule finds an offence, and accepts similar text without an offence.
@Suite struct TidyRulesTests {
    private let source = "Sources/ReelCore/Some.swift"

    @Test("a long file is seen") func aLongFileIs() {
        let lines = String(repeating: "let a = 1\n", count: 451)
        #expect(Rules.length(TrackedFile(source, lines)).count == 1)
        #expect(Rules.length(TrackedFile("Tests/ReelCoreTests/Some.swift", lines)).isEmpty)
        #expect(Rules.length(TrackedFile(source, String(lines.dropLast(10)))).isEmpty)
    }

    @Test("a wide line is seen") func aWideLineIs() {
        let wide = "\n// " + String(repeating: "w", count: 118)
        #expect(
            Rules.width(TrackedFile(source, wide)) == [
                Offence(TrackedFile(source, ""), line: 2, "is 121 columns wide, at most 120 are allowed")
            ]
        )
        #expect(Rules.width(TrackedFile(source, String(wide.dropLast()))).isEmpty)
        #expect(Rules.width(TrackedFile("docs/reference/fold.md", wide)).isEmpty)
        let text = "let event = \"" + wide + "\""
        #expect(Rules.width(TrackedFile("Tests/ReelCoreTests/Some.swift", wide)).count == 1)
        #expect(Rules.width(TrackedFile("Tests/ReelCoreTests/Some.swift", text.filter { $0 != "\n" })).isEmpty)
    }

    @Test(
        "unfinished work is seen",
        arguments: [
            "// TO" + "DO: later", "// FIX" + "ME", "/// XX" + "X", "HA" + "CK", "fatalError" + #"("not yet")"#,
        ]
    )
    func unfinishedWorkIsSeen(line: String) {
        #expect(Rules.unfinished(TrackedFile(source, line)).count == 1)
    }

    @Test(
        "the rule for unfinished work ignores a marker inside another word",
        arguments: ["let TO" + "DOs = 1", "HA" + "CKNEY", "let todo = 1"]
    )
    func ignoresMarkerInsideWord(line: String) {
        #expect(Rules.unfinished(TrackedFile(source, line)).isEmpty)
    }

    @Test("an empty name is seen") func anEmptyNameIs() {
        #expect(Rules.names(TrackedFile(source, "final cl" + "ass StreamManager {")).count == 1)
        #expect(Rules.names(TrackedFile("Sources/ReelCore/SeqUtils.swift", "")).count == 1)
        #expect(Rules.names(TrackedFile(source, "let manager = FileManager.default")).isEmpty)
    }

    @Test(
        "a trap is seen",
        arguments: ["try" + "! read()", "x as" + "! Int", "fatalError" + "()", "import Foundation"]
    )
    func aTrapIsSeen(line: String) {
        #expect(Rules.traps(TrackedFile(source, line)).count == 1)
        #expect(Rules.traps(TrackedFile("Tests/ReelCoreTests/Some.swift", line)).isEmpty)
    }

    @Test(
        "a path of a machine is seen",
        arguments: ["cd /wo" + "rk/main", "/ho" + "me/ann", "see DESIGN" + ".md", "../sha" + "red/data"]
    )
    func aPathOfA(line: String) {
        #expect(Rules.machine(TrackedFile("docs/reference/log.md", line)).count == 1)
        #expect(Rules.machine(TrackedFile(".ci/run", line)).isEmpty)
    }

    @Test("a binary and a heavy file are seen") func aBinaryAndA() {
        #expect(Rules.weight(TrackedFile(path: "docs/picture.png", bytes: [1, 0, 2])).count == 1)
        #expect(Rules.weight(TrackedFile(path: "docs/latin.txt", bytes: [0xE9])).count == 1)
        #expect(Rules.weight(TrackedFile(path: "Tests/ReelNetTests/Corpus/frame-1", bytes: [1, 0, 2])).isEmpty)
        #expect(
            Rules.weight(TrackedFile(path: "docs/reference/log.md", bytes: Array(repeating: 65, count: 300_001))).count
                == 1
        )
    }

    @Test("an import against the dependencies is seen") func anImportAgainstThe() {
        let modules = Modules(dependencies: ["ReelCore": [], "ReelLog": ["ReelCore"]])
        let log = "Sources/ReelLog/Some.swift"
        #expect(modules.offences(in: TrackedFile(log, "import Glibc\npublic import ReelCore\n")).isEmpty)
        #expect(modules.offences(in: TrackedFile(source, "\nimport struct ReelLog.LogBounds")).map(\.line) == [2])
        #expect(modules.offences(in: TrackedFile(log, "@testable public import ReelGateway")).count == 1)
        #expect(modules.offences(in: TrackedFile(log, "import Foundation")).count == 1)
        #expect(modules.offences(in: TrackedFile("Sources/Elsewhere/Some.swift", "")).count == 1)
        #expect(modules.offences(in: TrackedFile("Sources/Libraries/zlib/more.c", "")).count == 1)
        #expect(modules.offences(in: TrackedFile("Sources/Libraries/zlib/shim.h", "")).isEmpty)
    }

    @Test("the dependencies are read from page and package") func theDependenciesAreRead() {
        let page = TrackedFile(
            "docs/explanation/architecture.md",
            """
            | module | what | may import |
            | --- | --- | --- |
            | `ReelLog` | the log | `ReelCore`, `ReelSQLite` |
            | `ReelCore` | words | – |
            """
        )
        let package = TrackedFile(
            "Package.swift",
            #"library("ReelCore"), library("ReelLog", ["ReelCore", "ReelSQLite"]),"#
        )
        #expect(Modules(page: page) == Modules(package: package))
        let executable = TrackedFile(
            "Package.swift",
            ".executableTarget(\n  name: \"reel\",\n  dependencies: [\n \"ReelLog\",\n ],"
        )
        #expect(Modules(package: executable).dependencies == ["reel": ["ReelLog"]])
    }

    @Test("the apt line is found in the makefile") func theAptLineIs() {
        #expect(
            aptLine(makefile: TrackedFile("Makefile", "A := 1\nAPT_LINE := apt-get install x\n")) == "apt-get install x"
        )
    }
}
