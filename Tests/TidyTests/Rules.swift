/// The rules of the house that a machine can hold: each looks at one file and says where it is broken.
///
/// Words that are banned are written in two pieces here, since the rules hold for this file too.
enum Rules {
    typealias Rule = @Sendable (TrackedFile) -> [Offence]

    static let all: [Rule] = [length, width, unfinished, names, traps, machine, weight]

    /// A source file has one subject: 450 lines at most, a test 600.
    static func length(_ file: TrackedFile) -> [Offence] {
        guard file.isSwift else { return [] }
        let most = file.isTest ? 600 : 450
        let count = file.lines.count - 1
        return count > most ? [Offence(file, "has \(count) lines, at most \(most) are allowed")] : []
    }

    /// 120 columns, also in comments, where the formatter does not look. A test may keep a text whole.
    static func width(_ file: TrackedFile) -> [Offence] {
        guard file.isSwift || file.name.hasSuffix(".h") || file.name == "run" else { return [] }
        return file.lines.filter { line in
            line.text.utf8.count > 120 && line.text.count > 120 && !(file.isTest && line.text.utf8.contains(0x22))
        }.map { Offence(file, line: $0.number, "is \($0.text.count) columns wide, at most 120 are allowed") }
    }

    /// What is in the repository is finished.
    static func unfinished(_ file: TrackedFile) -> [Offence] {
        let words = ["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"]
        return offences(in: file, words: words, "stands for unfinished work")
            + offences(in: file, words: ["fatalError" + #"("not"#, "fatalError" + #"("un"#], "is no implementation")
    }

    /// A name says what a thing is, not that it helps.
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

    /// Nothing in the sources can trap by a word of its own.
    static func traps(_ file: TrackedFile) -> [Offence] {
        guard file.isSource, file.isSwift else { return [] }
        let words = ["try" + "!", "as" + "!", "fatalError" + "(", "preconditionFailure" + "(", "import Foundation"]
        return offences(in: file, words: words, "has no place in Sources")
    }

    /// The project stands alone: no path of the machine that it was written on. Only the script that runs on that
    /// machine may look beside the project.
    static func machine(_ file: TrackedFile) -> [Offence] {
        guard file.path != ".ci/run" else { return [] }
        let folders = ["/wo" + "rk/", "/ho" + "me/", "/ro" + "ot/", "/op" + "t/", "../sha" + "red", "/tmp/re" + "el"]
        let pages = ["CONTRACT" + ".md", "DESIGN" + ".md", "FACTS" + ".md", "STYLE" + ".md", "farm" + "-bench"]
        return offences(in: file, words: folders + pages, "belongs to another place than this project")
    }

    /// Text that people read: no binaries but a fuzzer's corpus, nothing above 300 KB.
    static func weight(_ file: TrackedFile) -> [Offence] {
        if file.bytes.count > 300_000 {
            return [Offence(file, "has \(file.bytes.count) bytes, at most 300,000 are allowed")]
        }
        guard !file.path.contains("/Corpus/") else { return [] }
        return file.text != nil ? [] : [Offence(file, "is no text")]
    }

    /// One offence for each line and word; a word that begins or ends with a letter stands alone.
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
