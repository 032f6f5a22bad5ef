import Testing

/// Checks that the repository follows its rules. Each rule is a function on one file. `TidyRulesTests` shows that each
/// rule finds an offence.
@Suite struct Tidy {
    let files: [TrackedFile]
    let modules: Modules

    init() throws {
        files = try Repository.files()
        modules = Modules(page: try Repository.file("docs/explanation/architecture.md"))
    }

    @Test("git lists the repository") func gitListsTheRepository() {
        #expect(files.count > 40)
        #expect(files.contains { $0.path == "Package.swift" })
    }

    @Test("every file keeps the rules") func everyFileKeepsThe() {
        expectNone(files.flatMap { file in Rules.all.flatMap { $0(file) } })
    }

    @Test("pages and comments are in plain language") func pagesAndCommentsAre() {
        expectNone(files.flatMap { file in Language.all.flatMap { $0(file) } })
    }

    @Test("doc comments of functions describe parameters and errors by name") func docCommentsDescribe() {
        expectNone(files.flatMap(ParameterDocs.all))
    }

    @Test("every source is in a module and imports point one way") func everySourceIsIn() {
        expectNone(files.flatMap(modules.offences))
    }

    @Test("the dependencies of the page are those of the package") func theDependenciesOfThe() throws {
        let package = Modules(package: try Repository.file("Package.swift"))
        #expect(Set(package.dependencies.keys) == Set(modules.dependencies.keys))
        for (module, targets) in package.dependencies {
            #expect(targets == modules.dependencies[module], "\(module)")
        }
    }

    @Test("the readme shows the makefiles apt line") func theReadmeShowsThe() throws {
        let line = try #require(aptLine(makefile: try Repository.file("Makefile")))
        let readme = try Repository.file("README.md")
        #expect(readme.lines.contains { $0.text.hasSuffix(line) }, "README.md must show: \(line)")
    }

    private func expectNone(_ offences: [Offence]) {
        #expect(offences.isEmpty, "\n\(offences.map(\.description).joined(separator: "\n"))")
    }
}

/// Returns the line that installs the C libraries, as the Makefile defines it.
func aptLine(makefile: TrackedFile) -> String? {
    let definition = "APT_LINE := "
    return makefile.lines.first { $0.text.hasPrefix(definition) }.map { String($0.text.dropFirst(definition.count)) }
}
