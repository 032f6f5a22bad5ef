import Foundation
import ReelCore
import ReelNode
import Testing

/// docs/metrics.md names every metric of the code, and nothing else.
@Suite struct MetricsPageTests {
    let repository = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    func names(in text: String) -> Set<String> {
        Set(text.matches(of: /["`](reel_(?:node|gateway|snapshot|kafka)_[a-z_]+)["`]/).map { String($0.output.1) })
    }

    @Test func thePageNamesEveryMetric() throws {
        let page = try String(contentsOf: repository.appending(path: "docs/metrics.md"), encoding: .utf8)
        var code: Set<String> = []
        let sources = FileManager.default.enumerator(
            at: repository.appending(path: "Sources"),
            includingPropertiesForKeys: nil
        )
        while let file = sources?.nextObject() as? URL {
            guard file.pathExtension == "swift" else { continue }
            code.formUnion(names(in: try String(contentsOf: file, encoding: .utf8)))
        }
        #expect(!code.isEmpty)
        #expect(names(in: page) == code)
        for reason in VoidRecord.Reason.allCases { #expect(page.contains("| `\(reason.rawValue)` |")) }
        for state in LogState.allCases { #expect(page.contains("| `\(state.rawValue)` |")) }
    }
}
