import Foundation
import Reel
import Testing

/// The guide about tests of apps describes the actual behavior.
@Suite(.timeLimit(.minutes(5))) struct TestingPageTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../..")

    /// Returns the lines without indentation.
    private func lines(_ path: String) throws -> [String] {
        try String(contentsOf: Self.root.appendingPathComponent(path), encoding: .utf8).split(separator: "\n").map {
            $0.trimmingCharacters(in: .whitespaces)
        }
    }

    @Test("each line of Swift on the page is compiled here") func eachLineOfSwift() throws {
        let compiled = Set(try lines("Tests/ReelTestingTests/TestingPage.swift"))
        var (isSwift, count) = (false, 0)
        for line in try lines("docs/guides/testing-apps.md") {
            if line.hasPrefix("```") {
                isSwift = line == "```swift"
            } else if isSwift {
                #expect(compiled.contains(line), "\(line)")
                count += 1
            }
        }
        #expect(count > 20)
    }

    @Test("the examples on the page behave as the page describes") func examples() async throws {
        try await TestingPage.run()
        #expect(try await TestingPage.preview().objects(of: TodoTask.self).values.map(\.title) == ["Milk"])
    }
}
