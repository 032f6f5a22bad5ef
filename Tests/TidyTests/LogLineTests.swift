import Testing

/// Checks that docs/reference/log-lines.md has a row for each event that nodes log.
@Suite struct LogLineTests {
    @Test("docs/reference/log-lines.md has a row for each event in the sources")
    func everyEventHasARow() throws {
        let page = try Repository.file("docs/reference/log-lines.md")
        let rows = Set(
            page.lines.compactMap { $0.text.firstMatch(of: /^\| `([^`]+)`/).map { String($0.output.1) } }
        )
        let call = #/(?:[lL]ogger\.(?:info|warning|error)|\bwarn)\(\s*"([^"\\]+)"/#
        var events: Set<String> = []
        for file in try Repository.files() where file.isSource && file.isSwift {
            for match in (file.text ?? "").matches(of: call) { events.insert(String(match.output.1)) }
        }
        #expect(events.count > 40)
        #expect(events.subtracting(rows).sorted() == [])
    }
}
