/// The rooms below `Sources` and the arrows between them, as the table of docs/explanation/architecture.md says them:
/// `| ReelLog | what it is for | ReelCore, ReelSQLite |`, the last column all that the room may import.
struct Rooms: Equatable {
    var arrows: [String: Set<String>]

    /// What every room may import besides: the standard library's own modules and the system's C library.
    static let system: Set<String> = ["Glibc", "Musl", "Darwin", "Synchronization"]

    init(arrows: [String: Set<String>]) {
        self.arrows = arrows
    }

    /// The rows whose first cell is a room's name in backquotes.
    init(page: TrackedFile) {
        arrows = [:]
        for line in page.lines {
            let cells = line.text.split(separator: "|").map { $0.filter { $0 != " " } }
            guard cells.count == 3, cells[0].hasPrefix("`"), cells[0].hasSuffix("`") else { continue }
            let room = cells[0].filter { $0 != "`" }
            arrows[room] = Set(cells[2].filter { $0 != "`" }.split(separator: ",").map(String.init)).subtracting(["–"])
        }
    }

    /// The targets of Package.swift and what they depend on: `library("ReelLog", ["ReelCore"])`, and the others by
    /// name.
    init(package: TrackedFile) {
        arrows = [:]
        let text = package.lines.map(\.text).joined(separator: " ")
        let target =
            /(?:library\(|(?:executableTarget|\.target)\(\s*name:\s*)"([Rr]eel\w*)"(?:,\s*(?:dependencies:\s*)?\[([^\]]*)\])?/
        for call in text.matches(of: target) {
            let names = (call.2 ?? "").matches(of: /"(\w+)"/).map { String($0.1) }
            arrows[String(call.1)] = Set(names)
        }
    }

    /// Every source file lies in a room, and imports only what its room may.
    func offences(in file: TrackedFile) -> [Offence] {
        guard file.isSource else { return [] }
        if file.path.hasPrefix("Sources/Libraries/") {
            return ["module.modulemap", "shim.h"].contains(file.name)
                ? [] : [Offence(file, "a C library's folder holds its module map and shim.h only")]
        }
        guard let room = file.room, let allowed = arrows[room] else {
            return [Offence(file, "lies in no room of docs/explanation/architecture.md")]
        }
        return file.lines.compactMap { line in
            guard let module = Self.module(imported: line.text),
                !allowed.contains(module), !Self.system.contains(module)
            else { return nil }
            return Offence(file, line: line.number, "\(room) may not import \(module)")
        }
    }

    /// The module that a line imports, without what stands in front of `import` and behind the module's name.
    static func module(imported line: Substring) -> String? {
        let words = line.split { $0 == " " || $0 == "." }
        guard let place = words.firstIndex(of: "import"),
            words[..<place].allSatisfy({ $0.hasPrefix("@") || access.contains($0) })
        else { return nil }
        return words[(place + 1)...].first { !kinds.contains($0) }.map(String.init)
    }

    private static let access: Set<Substring> = ["public", "package", "internal", "fileprivate", "private"]
    private static let kinds: Set<Substring> = [
        "struct", "class", "enum", "protocol", "func", "var", "let", "typealias",
    ]
}
