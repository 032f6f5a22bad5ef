import Reel
import TestSupport
import Testing

/// The guide about tests of apps describes the actual behavior.
@Suite(.timeLimit(.minutes(5))) struct TestingPageTests {
    @Test("each line of Swift on the page is compiled here") func eachLineOfSwift() throws {
        let code = try PageCode(of: "docs/guides/testing-apps.md", in: "Tests/ReelTestingTests/TestingPage.swift")
        #expect(code.missing.isEmpty && code.lines.count > 20)
    }

    @Test("the examples on the page behave as the page describes") func examples() async throws {
        try await TestingPage.run()
        #expect(try await TestingPage.preview().objects(of: TodoTask.self).values.map(\.title) == ["Milk"])
    }
}
