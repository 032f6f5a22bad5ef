/// The rules of language that a program can check, for pages and for comments in `Sources`.
enum Language {
    /// The maximum number of words in a sentence.
    static let wordsMax = 28

    static let all: [Rules.Rule] = [sentences, phrases, beginnings, spellings]

    /// A sentence of a page has at most 28 words. Code, tables and headings are excepted.
    static func sentences(_ file: TrackedFile) -> [Offence] {
        guard isPage(file) else { return [] }
        return paragraphs(ofPage: file).flatMap { paragraph -> [Offence] in
            Self.sentences(in: paragraph.text).compactMap { sentence -> Offence? in
                let count = words(in: sentence)
                guard count > wordsMax else { return nil }
                return Offence(
                    file,
                    line: paragraph.line,
                    "a sentence has \(count) words, at most \(wordsMax) are allowed: \(sentence.prefix(60))…"
                )
            }
        }
    }

    /// Pages and comments contain no metaphors, and no phrases that are hard to read with English as a second language.
    static func phrases(_ file: TrackedFile) -> [Offence] {
        paragraphs(of: file).flatMap { paragraph -> [Offence] in
            let text = withoutCode(paragraph.text)
            return banned.compactMap { phrase -> Offence? in
                guard let found = text.firstMatch(of: phrase) else { return nil }
                return Offence(file, line: paragraph.line, "“\(found.output)” is not plain technical English")
            }
        }
    }

    /// A doc comment starts with what the thing is or does.
    static func beginnings(_ file: TrackedFile) -> [Offence] {
        guard file.isSource, file.isSwift else { return [] }
        return comments(in: file, marker: "///").compactMap { comment -> Offence? in
            guard let word = comment.text.firstMatch(of: /^(?:What|Who|Whoever|Whether|So)\b/) else { return nil }
            return Offence(file, line: comment.line, "a doc comment begins with “\(word.output)”")
        }
    }

    /// A term of the glossary has one spelling.
    static func spellings(_ file: TrackedFile) -> [Offence] {
        paragraphs(of: file).flatMap { paragraph -> [Offence] in
            let text = withoutCode(paragraph.text)
            return otherSpellings.compactMap { other, term -> Offence? in
                guard let found = text.firstMatch(of: other) else { return nil }
                return Offence(file, line: paragraph.line, "found “\(found.output)”, the term is “\(term)”")
            }
        }
    }

    // MARK: Lists

    nonisolated(unsafe) private static let banned: [Regex<Substring>] = [
        /\b[Aa]new\b/, /\b(?:goes|gone|going) on\b/, /\b(?:who|some)(?:ever|body)\b/, /\bis told of\b/,
        /\bso (?:many|much|long|often)\b/, /\bof late\b/, /\bas far as\b/, /\bcomes to nothing\b/, /\bby itself\b/,
    ]

    nonisolated(unsafe) private static let otherSpellings: [(Regex<Substring>, String)] = [
        (/\b[Jj]ournals?\b/, "log line"), (/\b(?:[Ww]eb [Ss]ocket|Websocket|websocket)\b/, "WebSocket"),
        (/\bback-log\b/, "backlog"), (/\btime-outs?\b/, "timeout"), (/\bthe [Jj]udge\b/, "checker"),
        (/\bthe [Tt]ape\b/, "log"), (/\b[Ss]nap-shot\b/, "snapshot"), (/\bmeta-data\b/, "metadata"),
    ]

    // MARK: Parts of a file

    struct Paragraph: Equatable {
        /// The number of the first line.
        var line: Int
        /// The text, joined into one line.
        var text: String
    }

    /// Returns true for the pages below `docs` and at the top of the repository.
    private static func isPage(_ file: TrackedFile) -> Bool {
        file.name.hasSuffix(".md") && !file.path.hasPrefix("Tests/")
    }

    /// Returns the prose of a page, or the comments of a source file.
    private static func paragraphs(of file: TrackedFile) -> [Paragraph] {
        if isPage(file) { return paragraphs(ofPage: file) }
        guard file.isSource, file.isSwift else { return [] }
        return comments(in: file, marker: "//")
    }

    /// Returns the paragraphs and list items of a page, without code, tables, headings and quotes.
    static func paragraphs(ofPage file: TrackedFile) -> [Paragraph] {
        var (found, isCode): ([Paragraph], Bool) = ([], false)
        var isOpen = false
        for line in file.lines {
            let text = line.text.drop { $0 == " " }
            if text.hasPrefix("```") {
                isCode.toggle()
                isOpen = false
            } else if isCode || text.isEmpty || ["|", "#", ">", "<"].contains(where: text.hasPrefix) {
                isOpen = false
            } else if let item = text.firstMatch(of: #/^(?:[-*]|\d+\.) /#) {
                found.append(Paragraph(line: line.number, text: String(text[item.range.upperBound...])))
                isOpen = true
            } else if isOpen {
                found[found.count - 1].text += " " + text
            } else {
                found.append(Paragraph(line: line.number, text: String(text)))
                isOpen = true
            }
        }
        return found
    }

    /// Returns the comments of a file that have lines of their own. Comments on adjacent lines are joined.
    static func comments(in file: TrackedFile, marker: String) -> [Paragraph] {
        var found: [Paragraph] = []
        var last = -1
        for line in file.lines {
            let text = line.text.drop { $0 == " " }
            guard text.hasPrefix(marker), !text.hasPrefix("// MARK") else { continue }
            let words = text.drop { $0 == "/" }.drop { $0 == " " }
            if last == line.number - 1, !found.isEmpty {
                found[found.count - 1].text += " " + words
            } else {
                found.append(Paragraph(line: line.number, text: String(words)))
            }
            last = line.number
        }
        return found
    }

    private static func withoutCode(_ text: String) -> String { text.replacing(/`[^`]*`/, with: "X") }

    /// Returns the sentences of a text. A colon or a semicolon also ends a sentence, because a reader can pause there.
    static func sentences(in text: String) -> [String] {
        let plain = withoutCode(text).replacing(/\[([^\]]*)\]\([^)]*\)/) { String($0.output.1) }
        var (sentences, current): ([String], [Substring]) = ([], [])
        for word in plain.split(separator: " ") {
            current.append(word)
            let end = word.reversed().first { !"*_\"”)".contains($0) }
            guard let end, ".!?:;".contains(end) else { continue }
            sentences.append(current.joined(separator: " "))
            current = []
        }
        if !current.isEmpty { sentences.append(current.joined(separator: " ")) }
        return sentences
    }

    private static func words(in sentence: String) -> Int {
        sentence.split(separator: " ").count { word in word.contains { $0.isLetter || $0.isNumber } }
    }
}
