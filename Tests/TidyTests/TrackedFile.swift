import Foundation

/// A file of the repository, as git lists it.
struct TrackedFile {
    /// The path, relative to the top of the repository.
    let path: String
    let bytes: [UInt8]
    /// The text; nil if the bytes are not text.
    let text: String?
    /// The lines of the text, numbered from 1.
    let lines: [(number: Int, text: Substring)]

    init(_ path: String, _ text: String) {
        self.init(path: path, bytes: Array(text.utf8))
    }

    init(path: String, bytes: [UInt8]) {
        self.path = path
        self.bytes = bytes
        text = bytes.contains(0) ? nil : String(validating: bytes, as: UTF8.self)
        lines = (text?.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) ?? [])
            .enumerated().map { ($0.offset + 1, Substring($0.element)) }
    }

    /// Returns true if the text contains the word. Rules call it first because it is fast, and most files contain none
    /// of their words.
    func holds(_ word: String) -> Bool {
        text?.withCString { strstr($0, word) != nil } ?? false
    }

    var name: String { path.split(separator: "/").last.map(String.init) ?? path }
    var isSwift: Bool { path.hasSuffix(".swift") }
    var isSource: Bool { path.hasPrefix("Sources/") }
    var isTest: Bool { path.hasPrefix("Tests/") }

    /// The folder below `Sources`, which is the module of the file; nil for a file outside `Sources`.
    var module: String? {
        let parts = path.split(separator: "/")
        return parts.count > 2 && parts[0] == "Sources" ? String(parts[1]) : nil
    }
}

/// An offence against a rule of the repository, with the file and the line.
struct Offence: Equatable, CustomStringConvertible {
    var path: String
    var line: Int?
    var what: String

    init(_ file: TrackedFile, line: Int? = nil, _ what: String) {
        self.path = file.path
        self.line = line
        self.what = what
    }

    var description: String { "\(path)\(line.map { ":\($0)" } ?? ""): \(what)" }
}

/// The files of this repository that git lists: the tracked files, and the new ones that it does not ignore.
enum Repository {
    static let top = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    static func files() throws -> [TrackedFile] {
        let git = Process()
        git.executableURL = URL(filePath: "/usr/bin/env")
        git.arguments = [
            "git", "-c", "safe.directory=*", "-C", top.path, "ls-files", "-z", "--cached", "--others",
            "--exclude-standard",
        ]
        let output = Pipe()
        git.standardOutput = output
        try git.run()
        let listed = try output.fileHandleForReading.readToEnd() ?? Data()
        git.waitUntilExit()
        return listed.split(separator: 0).compactMap { path in
            let path = String(decoding: path, as: UTF8.self)
            // Git still lists a file that was removed but not committed.
            guard let data = FileManager.default.contents(atPath: top.appending(path: path).path) else { return nil }
            return TrackedFile(path: path, bytes: Array(data))
        }
    }

    static func file(_ path: String) throws -> TrackedFile {
        TrackedFile(path: path, bytes: Array(try Data(contentsOf: top.appending(path: path))))
    }
}
