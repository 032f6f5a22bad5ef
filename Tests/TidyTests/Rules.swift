/// The rules of the repository that a program can check. Each rule checks one file and returns its offences.
///
/// Banned words are written in two parts here, because the rules apply to this file too.
enum Rules {
    typealias Rule = @Sendable (TrackedFile) -> [Offence]

    static let all: [Rule] = [length, width, unfinished, names, traps, machine, weight]

    /// A source file has at most 450 lines, and a test file at most 600, so that each has one subject.
    static func length(_ file: TrackedFile) -> [Offence] {
        guard file.isSwift else { return [] }
        let limit = file.isTest ? 600 : 450
        let count = file.lines.count - 1
        return count > limit ? [Offence(file, "has \(count) lines, at most \(limit) are allowed")] : []
    }

    /// A line has at most 120 columns, also in comments, which the formatter does not check. A line of a test that
    /// contains a string may be longer.
    static func width(_ file: TrackedFile) -> [Offence] {
        guard file.isSwift || file.name.hasSuffix(".h") || file.name == "run" else { return [] }
        return file.lines.filter { line in
            line.text.utf8.count > 120 && line.text.count > 120 && !(file.isTest && line.text.utf8.contains(0x22))
        }.map { Offence(file, line: $0.number, "is \($0.text.count) columns wide, at most 120 are allowed") }
    }

    /// No file contains a marker of unfinished work.
    static func unfinished(_ file: TrackedFile) -> [Offence] {
        let words = ["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"]
        return offences(in: file, words: words, "stands for unfinished work")
            + offences(in: file, words: ["fatalError" + #"("not"#, "fatalError" + #"("un"#], "is no implementation")
    }

    /// The name of a file or type describes its subject, so it contains none of these empty words.
    static func names(_ file: TrackedFile) -> [Offence] {
        guard file.isSwift else { return [] }
        let words = ["Manager", "Helper", "Utils"]
        let inPath = words.filter(file.name.contains).map { Offence(file, "“\($0)” in a file's name says nothing") }
        let inTypes = words.filter(file.holds).flatMap { word in
            file.lines.filter { line in
                line.text.matches(of: /\b(?:struct|class|enum|actor|protocol|typealias)\s+(\w+)/).contains {
                    $0.1.contains(word)
                }
            }.map { Offence(file, line: $0.number, "“\(word)” in the name of a type says nothing") }
        }
        return inPath + inTypes
    }

    /// The sources contain no call that can only trap. Only the modules for Foundation import Foundation.
    static func traps(_ file: TrackedFile) -> [Offence] {
        guard file.isSource, file.isSwift else { return [] }
        let words =
            ["try" + "!", "as" + "!", "fatalError" + "(", "preconditionFailure" + "("]
            + (Modules.ofFoundation.contains(file.module ?? "") ? [] : ["import Foundation"])
        return offences(in: file, words: words, "has no place in Sources")
    }

    /// No file contains a path of one particular machine, because the project must work on every machine. Only
    /// `.ci/run` may use files outside the project.
    static func machine(_ file: TrackedFile) -> [Offence] {
        guard file.path != ".ci/run" else { return [] }
        let folders = ["/wo" + "rk/", "/ho" + "me/", "/ro" + "ot/", "/op" + "t/", "../sha" + "red", "/tmp/re" + "el"]
        let pages = ["CONTRACT" + ".md", "DESIGN" + ".md", "FACTS" + ".md", "STYLE" + ".md", "farm" + "-bench"]
        return offences(in: file, words: folders + pages, "belongs to another place than this project")
    }

    /// Every file is text of at most 300,000 bytes. Only the fuzzers' corpus may be binary.
    static func weight(_ file: TrackedFile) -> [Offence] {
        if file.bytes.count > 300_000 {
            return [Offence(file, "has \(file.bytes.count) bytes, at most 300,000 are allowed")]
        }
        guard !file.path.contains("/Corpus/") else { return [] }
        return file.text != nil ? [] : [Offence(file, "is no text")]
    }

    /// Returns one offence for each line and word. A letter at either end of the word must not continue a longer word.
    private static func offences(in file: TrackedFile, words: [String], _ what: String) -> [Offence] {
        words.filter(file.holds).flatMap { word in
            file.lines.filter { stands(word, in: $0.text) }.map {
                Offence(file, line: $0.number, "“\(word)” \(what)")
            }
        }
    }

    private static func stands(_ word: String, in line: Substring) -> Bool {
        func isLetter(_ character: Character?) -> Bool {
            character.map { $0.isLetter || $0.isNumber || $0 == "_" } ?? false
        }
        return line.ranges(of: word).contains { range in
            let before = line[..<range.lowerBound].last
            let after = line[range.upperBound...].first
            return !(isLetter(word.first) && isLetter(before)) && !(isLetter(word.last) && isLetter(after))
        }
    }
}
