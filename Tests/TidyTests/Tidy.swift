import Testing

/// The repository keeps the rules of the house. Each rule is a function on one file; `TidyRulesTests` shows that each
/// of them sees an offence.
@Suite struct Tidy {
    let files: [TrackedFile]
    let rooms: Rooms

    init() throws {
        files = try Repository.files()
        rooms = Rooms(page: try Repository.file("docs/explanation/architecture.md"))
    }

    @Test func gitListsTheRepository() {
        #expect(files.count > 40)
        #expect(files.contains { $0.path == "Package.swift" })
    }

    @Test func everyFileKeepsTheRules() {
        expectNone(files.flatMap { file in Rules.all.flatMap { $0(file) } })
    }

    @Test func everySourceLiesInARoomAndImportsPointOneWay() {
        expectNone(files.flatMap(rooms.offences))
    }

    @Test func theArrowsOfThePageAreThoseOfThePackage() throws {
        let package = Rooms(package: try Repository.file("Package.swift"))
        #expect(Set(package.arrows.keys) == Set(rooms.arrows.keys))
        for (room, targets) in package.arrows {
            #expect(targets == rooms.arrows[room], "\(room)")
        }
    }

    @Test func theReadmeShowsTheMakefilesAptLine() throws {
        let line = try #require(aptLine(makefile: try Repository.file("Makefile")))
        let readme = try Repository.file("README.md")
        #expect(readme.lines.contains { $0.text.hasSuffix(line) }, "README.md must show: \(line)")
    }

    private func expectNone(_ offences: [Offence]) {
        #expect(offences.isEmpty, "\n\(offences.map(\.description).joined(separator: "\n"))")
    }
}

/// The line that installs the C libraries, as the Makefile defines it.
func aptLine(makefile: TrackedFile) -> String? {
    let definition = "APT_LINE := "
    return makefile.lines.first { $0.text.hasPrefix(definition) }.map { String($0.text.dropFirst(definition.count)) }
}
