import Foundation
import Testing

/// Checks that the mutants of `make mutants` apply to the current sources.
@Suite struct MutantTests {
    private static let files = (try? Repository.files()) ?? []
    private static let tests = files.filter { $0.isTest && $0.isSwift }
    private static let patches = files.map(\.path).filter { $0.hasPrefix("Tests/Mutants/") && $0.hasSuffix(".patch") }

    @Test("there are at least twenty") func thereAreAtLeast() {
        #expect(Self.patches.count >= 20)
    }

    @Test("each applies", arguments: patches) func eachApplies(_ patch: String) throws {
        let git = Process()
        git.executableURL = URL(filePath: "/usr/bin/env")
        git.arguments = ["git", "-c", "safe.directory=*", "-C", Repository.top.path, "apply", "--check", patch]
        try git.run()
        git.waitUntilExit()
        #expect(git.terminationStatus == 0, "\(patch) does not apply any more")
    }

    @Test("docs/contributing/testing.md has a row for each mutant") func eachHasARow() throws {
        let rows = try Repository.file("docs/contributing/testing.md").lines.map(\.text)
        for patch in Self.patches {
            let name = patch.dropFirst("Tests/Mutants/".count).dropLast(".patch".count)
            #expect(rows.contains { $0.hasPrefix("| `\(name)` |") }, "no row of \(name)")
        }
    }

    /// Checks that the header of each patch describes the bug, the check that finds it, and the command that shows it.
    /// The check and the suites that the header names must exist.
    @Test("each mutant describes its bug and names existing checks", arguments: patches) func mutantsDescribeThemselves(
        _ patch: String
    ) throws {
        let header = try Repository.file(patch).lines.prefix { !$0.text.hasPrefix("diff ") }.map(\.text)
        func field(_ name: String) -> Substring? {
            header.first { $0.hasPrefix("\(name): ") }?.dropFirst(name.count + 2)
        }
        #expect(field("Bug")?.isEmpty == false)
        #expect(field("Smallest")?.isEmpty == false)
        let sees = try #require(field("Caught by"))
        #expect(
            ["simulator", "judge"].contains(sees) || Self.tests.contains { $0.holds(String(sees)) },
            "no test “\(sees)”"
        )
        for suite in try #require(field("Suites")).split(separator: " ") {
            #expect(Self.tests.contains { $0.holds("struct \(suite)") }, "no suite \(suite)")
        }
    }
}
