import Testing

/// Checks that the pages which lead through the code name members that exist.
@Suite struct NamedMembersTests {
    @Test(
        "each member that a page about the code names exists",
        arguments: ["docs/explanation/gateway-data-flow.md", "docs/explanation/stream-sync.md"]
    )
    func members(page: String) throws {
        let sources = try Repository.files().filter { $0.isSource && $0.isSwift }
        let text = try #require(try Repository.file(page).text)
        let names = Set(text.matches(of: /`([A-Z]\w+)\.([a-z]\w+)`/).map { [String($0.1), String($0.2)] })
        #expect(!names.isEmpty)
        for name in names {
            let (type, member) = (name[0], name[1])
            let kinds = ["class", "struct", "enum", "actor", "protocol", "extension"].map { "\($0) \(type)" }
            let members = ["func", "var", "let", "case"].map { "\($0) \(member)" }
            #expect(
                sources.contains { file in kinds.contains { file.holds($0) } && members.contains { file.holds($0) } },
                "\(page) names \(type).\(member), which does not exist"
            )
        }
    }
}
