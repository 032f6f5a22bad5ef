import Testing

/// Each rule sees the offence that it is there for, and leaves alone what only looks like it.
@Suite struct TidyRulesTests {
    private let room = "Sources/ReelCore/Some.swift"

    @Test func aLongFileIsSeen() {
        let lines = String(repeating: "let a = 1\n", count: 451)
        #expect(Rules.length(TrackedFile(room, lines)).count == 1)
        #expect(Rules.length(TrackedFile("Tests/ReelCoreTests/Some.swift", lines)).isEmpty)
        #expect(Rules.length(TrackedFile(room, String(lines.dropLast(10)))).isEmpty)
    }

    @Test func aWideLineIsSeen() {
        let wide = "\n// " + String(repeating: "w", count: 118)
        #expect(
            Rules.width(TrackedFile(room, wide)) == [
                Offence(TrackedFile(room, ""), line: 2, "is 121 columns wide, at most 120 are allowed")
            ]
        )
        #expect(Rules.width(TrackedFile(room, String(wide.dropLast()))).isEmpty)
        #expect(Rules.width(TrackedFile("docs/reference/fold.md", wide)).isEmpty)
        let text = "let event = \"" + wide + "\""
        #expect(Rules.width(TrackedFile("Tests/ReelCoreTests/Some.swift", wide)).count == 1)
        #expect(Rules.width(TrackedFile("Tests/ReelCoreTests/Some.swift", text.filter { $0 != "\n" })).isEmpty)
    }

    @Test(arguments: [
        "// TO" + "DO: later", "// FIX" + "ME", "/// XX" + "X", "HA" + "CK", "fatalError" + #"("not yet")"#,
    ])
    func unfinishedWorkIsSeen(line: String) {
        #expect(Rules.unfinished(TrackedFile(room, line)).count == 1)
    }

    @Test(arguments: ["let TO" + "DOs = 1", "HA" + "CKNEY", "let todo = 1"])
    func aWordInsideAnotherIsNone(line: String) {
        #expect(Rules.unfinished(TrackedFile(room, line)).isEmpty)
    }

    @Test func anEmptyNameIsSeen() {
        #expect(Rules.names(TrackedFile(room, "final cl" + "ass StreamManager {")).count == 1)
        #expect(Rules.names(TrackedFile("Sources/ReelCore/SeqUtils.swift", "")).count == 1)
        #expect(Rules.names(TrackedFile(room, "let manager = FileManager.default")).isEmpty)
    }

    @Test(arguments: ["try" + "! read()", "x as" + "! Int", "fatalError" + "()", "import Foundation"])
    func aTrapIsSeen(line: String) {
        #expect(Rules.traps(TrackedFile(room, line)).count == 1)
        #expect(Rules.traps(TrackedFile("Tests/ReelCoreTests/Some.swift", line)).isEmpty)
    }

    @Test(arguments: ["cd /wo" + "rk/main", "/ho" + "me/ann", "see DESIGN" + ".md", "../sha" + "red/data"])
    func aPathOfAMachineIsSeen(line: String) {
        #expect(Rules.machine(TrackedFile("docs/reference/log.md", line)).count == 1)
        #expect(Rules.machine(TrackedFile(".ci/run", line)).isEmpty)
    }

    @Test func aBinaryAndAHeavyFileAreSeen() {
        #expect(Rules.weight(TrackedFile(path: "docs/picture.png", bytes: [1, 0, 2])).count == 1)
        #expect(Rules.weight(TrackedFile(path: "docs/latin.txt", bytes: [0xE9])).count == 1)
        #expect(Rules.weight(TrackedFile(path: "Tests/ReelNetTests/Corpus/frame-1", bytes: [1, 0, 2])).isEmpty)
        #expect(
            Rules.weight(TrackedFile(path: "docs/reference/log.md", bytes: Array(repeating: 65, count: 300_001))).count
                == 1
        )
    }

    @Test func anImportAgainstTheArrowsIsSeen() {
        let rooms = Rooms(arrows: ["ReelCore": [], "ReelLog": ["ReelCore"]])
        let log = "Sources/ReelLog/Some.swift"
        #expect(rooms.offences(in: TrackedFile(log, "import Glibc\npublic import ReelCore\n")).isEmpty)
        #expect(rooms.offences(in: TrackedFile(room, "\nimport struct ReelLog.LogBounds")).map(\.line) == [2])
        #expect(rooms.offences(in: TrackedFile(log, "@testable public import ReelGateway")).count == 1)
        #expect(rooms.offences(in: TrackedFile(log, "import Foundation")).count == 1)
        #expect(rooms.offences(in: TrackedFile("Sources/Elsewhere/Some.swift", "")).count == 1)
        #expect(rooms.offences(in: TrackedFile("Sources/Libraries/zlib/more.c", "")).count == 1)
        #expect(rooms.offences(in: TrackedFile("Sources/Libraries/zlib/shim.h", "")).isEmpty)
    }

    @Test func theArrowsAreReadFromPageAndPackage() {
        let page = TrackedFile(
            "docs/explanation/architecture.md",
            """
            | room | what | may import |
            | --- | --- | --- |
            | `ReelLog` | the log | `ReelCore`, `ReelSQLite` |
            | `ReelCore` | words | – |
            """
        )
        let package = TrackedFile(
            "Package.swift",
            #"library("ReelCore"), library("ReelLog", ["ReelCore", "ReelSQLite"]),"#
        )
        #expect(Rooms(page: page) == Rooms(package: package))
        let executable = TrackedFile(
            "Package.swift",
            ".executableTarget(\n  name: \"reel\",\n  dependencies: [\n \"ReelLog\",\n ],"
        )
        #expect(Rooms(package: executable).arrows == ["reel": ["ReelLog"]])
    }

    @Test func theAptLineIsFoundInTheMakefile() {
        #expect(
            aptLine(makefile: TrackedFile("Makefile", "A := 1\nAPT_LINE := apt-get install x\n")) == "apt-get install x"
        )
    }
}
