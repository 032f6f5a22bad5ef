import Foundation
import ReelCore
import Testing

@Suite struct ErrorCodeTests {
    @Test("the page of errors is that of the table") func thePageOfErrors() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = try String(contentsOf: root.appending(path: "docs/reference/errors.md"), encoding: .utf8)
        #expect(page == ErrorCode.page(), "write it anew: reel help --errors > docs/reference/errors.md")
    }

    @Test("the HTTP status of an error code matches its kind", arguments: ErrorCode.allCases)
    func statusMatchesKind(_ code: ErrorCode) {
        if code.rawValue.hasPrefix("bad_") { #expect(code.status == 400) }
        if code.status == 503 { #expect(code.entry.retry == .later) }
        if let close = code.close { #expect([1008, 1009, 1013, 4401].contains(close)) }
        #expect((400...599).contains(code.status))
    }
}
