/// The modules below `Sources` and their dependencies, as the table of docs/explanation/architecture.md lists them. A
/// row is `| ReelLog | what it is for | ReelCore, ReelSQLite |`; the last cell lists all modules that the module may
/// import.
struct Modules: Equatable {
    var dependencies: [String: Set<String>]

    /// The modules that every module may import in addition: the C library and the standard library's own.
    static let system: Set<String> = ["Glibc", "Musl", "Darwin", "Observation", "Synchronization"]

    /// The modules of the platform that a module is for.
    private static let platform: [String: Set<String>] = [
        "ReelFoundation": ["Foundation"],
        "ReelSwiftUI": ["SwiftUI"],
        "ReelURLSession": ["Dispatch", "Foundation", "FoundationNetworking"],
    ]

    /// The modules that may import Foundation.
    static let ofFoundation = Set(platform.filter { $0.value.contains("Foundation") }.keys)

    init(dependencies: [String: Set<String>]) {
        self.dependencies = dependencies
    }

    /// Reads the rows that start with a module's name in backquotes.
    init(page: TrackedFile) {
        dependencies = [:]
        for line in page.lines {
            let cells = line.text.split(separator: "|").map { $0.filter { $0 != " " } }
            guard cells.count == 3, cells[0].hasPrefix("`"), cells[0].hasSuffix("`") else { continue }
            let module = cells[0].filter { $0 != "`" }
            let imports = cells[2].filter { $0 != "`" }.split(separator: ",").map(String.init)
            dependencies[module] = Set(imports).subtracting(["–"])
        }
    }

    /// Reads the Reel targets of Package.swift and their dependencies, from calls such as
    /// `library("ReelLog", ["ReelCore"])`.
    init(package: TrackedFile) {
        dependencies = [:]
        let text = package.lines.map(\.text).joined(separator: " ")
        let target =
            /(?:library\(|(?:executableTarget|\.target)\(\s*name:\s*)"([Rr]eel\w*)"(?:,\s*(?:dependencies:\s*)?\[([^\]]*)\])?/
        for call in text.matches(of: target) {
            let names = (call.2 ?? "").matches(of: /"(\w+)"/).map { String($0.1) }
            dependencies[String(call.1)] = Set(names)
        }
    }

    /// Returns an offence for a source file outside all modules, and for each import that its module may not have.
    func offences(in file: TrackedFile) -> [Offence] {
        guard file.isSource else { return [] }
        if file.path.hasPrefix("Sources/Libraries/") {
            return ["module.modulemap", "shim.h"].contains(file.name)
                ? [] : [Offence(file, "a C library's folder holds its module map and shim.h only")]
        }
        guard let module = file.module, let allowed = dependencies[module] else {
            return [Offence(file, "is in no module of docs/explanation/architecture.md")]
        }
        return file.lines.compactMap { line in
            guard let imported = Self.module(imported: line.text),
                !allowed.contains(imported), !Self.system.contains(imported),
                Self.platform[module]?.contains(imported) != true
            else { return nil }
            return Offence(file, line: line.number, "\(module) may not import \(imported)")
        }
    }

    /// Returns the module that an import line names, or nil if the line is no import.
    static func module(imported line: Substring) -> String? {
        let words = line.split { $0 == " " || $0 == "." }
        guard let index = words.firstIndex(of: "import"),
            words[..<index].allSatisfy({ $0.hasPrefix("@") || access.contains($0) })
        else { return nil }
        return words[(index + 1)...].first { !kinds.contains($0) }.map(String.init)
    }

    private static let access: Set<Substring> = ["public", "package", "internal", "fileprivate", "private"]
    private static let kinds: Set<Substring> = [
        "struct", "class", "enum", "protocol", "func", "var", "let", "typealias",
    ]
}
