/// A function, initializer or subscript of a source file that has a doc comment.
///
/// The reader relies on the layout of `swift format`: a declaration begins on a line of its own, and the members of a
/// type are indented by four columns more than the type.
struct DocumentedFunction: Equatable {
    /// The line that the declaration begins at.
    var line = 0
    /// The name without labels: `read`, `init`, `subscript`.
    var name = ""
    /// True if other modules can call it: it is `public`, `open` or `package`, or a member of such a protocol or
    /// extension.
    var isPublic = false
    /// The internal names of the parameters, in order, without those that are `_`.
    var parameters: [String] = []
    /// True for `throws`, typed or not; false for `rethrows`.
    var doesThrow = false
    var comment = DocComment()
    /// The properties with a doc comment that stand in the same braces; only for an initializer.
    var documentedProperties: Set<String> = []

    /// Returns the documented functions of a file, in their order.
    static func all(in file: TrackedFile) -> [DocumentedFunction] {
        let lines = file.lines.map { Line($0.text) }
        var found: [DocumentedFunction] = []
        var (first, isOpen) = (0, false)
        for (index, line) in lines.enumerated() {
            if line.isDocumentation {
                if !isOpen { first = index }
                isOpen = true
            } else if isOpen, !line.isComment {
                // An attribute on a line of its own belongs to the declaration.
                isOpen = false
                guard var function = parse(lines[index...].prefix(longest)) else { continue }
                function.line = index + 1
                function.comment = DocComment(
                    lines[first..<index].lazy.filter(\.isDocumentation).map { $0.text.dropFirst(3) }
                )
                let scope = Scope(of: index, in: lines)
                function.isPublic = function.isPublic || scope.makesMembersPublic(lines)
                if function.name == "init" { function.documentedProperties = scope.documentedProperties(lines) }
                found.append(function)
            }
        }
        return found
    }

    /// The most lines of a declaration that are read.
    private static let longest = 60

    // MARK: A declaration

    /// Returns the function that begins at the first of the lines; nil if another declaration begins there.
    private static func parse(_ lines: ArraySlice<Line>) -> DocumentedFunction? {
        // A regular expression is slow, so most declarations are excluded before.
        let head = lines.prefix { !$0.text.utf8.contains(UInt8(ascii: "(")) }.count
        let names = [" init", " func ", " subscript"]
        let isFunction = lines.prefix(head + 2).contains { line in
            names.contains { " \(line.text)".contains($0) }
        }
        guard isFunction else { return nil }

        var rest = lines.lazy.filter { !$0.isComment }.map(\.text).joined(separator: "\n")[...]
        var function = DocumentedFunction()
        rest = rest.trimmingPrefix(attributes)
        while let modifier = rest.prefixMatch(of: word), modifiers.contains(modifier.1) {
            if visible.contains(modifier.1) { function.isPublic = true }
            rest = rest[modifier.range.upperBound...]
        }
        guard let start = rest.prefixMatch(of: keyword) else { return nil }
        function.name = String(start.1 ?? start.2 ?? "")
        rest = rest[start.range.upperBound...]
        if rest.hasPrefix("<") { _ = pieces(&rest) }
        guard rest.hasPrefix("(") else { return nil }
        function.parameters = pieces(&rest).compactMap { piece in
            let names = piece.prefix { $0 != ":" }.split { $0 == " " || $0 == "\n" }
            return names.last.map { String($0.filter { $0 != "`" }) }
        }.filter { $0 != "_" }
        function.doesThrow = rest.prefixMatch(of: throwing) != nil
        return function
    }

    // A regular expression in a function is compiled at each call.
    nonisolated(unsafe) private static let attributes = #/(?:@\w+(?:\([^)]*\))?\s+)*/#
    nonisolated(unsafe) private static let word = #/(\w+)(?:\(\w+\))?\s+/#
    nonisolated(unsafe) private static let keyword = #/func\s+`?(\w+|[^\s\w(`]+)`?\s*|(init|subscript)[?!]?/#
    nonisolated(unsafe) private static let throwing = #/\s*(?:async\s+)?throws\b/#
    nonisolated(unsafe) private static let string = #/"(?:[^"\\]|\\.)*"/#

    private static let visible: Set<Substring> = ["public", "open", "package"]

    private static let modifiers: Set<Substring> = [
        "public", "open", "package", "internal", "private", "fileprivate", "static", "class", "final", "override",
        "required", "convenience", "mutating", "nonmutating", "nonisolated", "consuming", "borrowing", "isolated",
        "prefix", "postfix", "infix",
    ]

    /// Removes a list in brackets from the beginning of a text, and returns its parts between commas.
    private static func pieces(_ text: inout Substring) -> [Substring] {
        var (found, open): ([Substring], [Character]) = ([], [text.removeFirst()])
        var (index, previous): (Substring.Index, Character) = (text.startIndex, open[0])
        var start = index
        while index < text.endIndex {
            let (character, next) = (text[index], text.index(after: index))
            switch character {
            case "(", "[", "{": open.append(character)
            // An operator stands between spaces.
            case "<" where previous != " " && !text[next...].hasPrefix(" "): open.append(character)
            case ")", "]", "}": open.removeLast()
            case ">" where previous != "-" && open.last == "<": open.removeLast()
            case "," where open.count == 1:
                found.append(text[start..<index])
                start = next
            case "\"":
                let end = text[index...].prefixMatch(of: string)?.range.upperBound ?? next
                (index, previous) = (end, character)
                continue
            default: break
            }
            if open.isEmpty {
                found.append(text[start..<index])
                text = text[next...]
                return found
            }
            (index, previous) = (next, character)
        }
        text = text[text.endIndex...]
        return found
    }

    // MARK: Lines

    private struct Line {
        /// The number of spaces before the text.
        let column: Int
        /// The line without these spaces.
        let text: Substring

        init(_ line: Substring) {
            let rest = line.utf8.drop { $0 == UInt8(ascii: " ") }
            text = Substring(rest)
            column = line.utf8.distance(from: line.utf8.startIndex, to: rest.startIndex)
        }

        var isComment: Bool { text.utf8.starts(with: "//".utf8) }
        var isDocumentation: Bool { text.utf8.starts(with: "///".utf8) }
        var opensBraces: Bool { text.utf8.last == UInt8(ascii: "{") }
    }

    /// The braces around a declaration: those of a type, a protocol or an extension.
    private struct Scope {
        /// The column that the members begin at.
        let column: Int
        /// The index of the line that ends with the brace; −1 at the top of a file.
        let opening: Int

        init(of index: Int, in lines: [Line]) {
            let column = lines[index].column
            self.column = column
            opening = lines[..<index].lastIndex { $0.column == column - 4 && $0.opensBraces } ?? -1
        }

        /// Returns true for `public protocol` and `public extension`.
        func makesMembersPublic(_ lines: [Line]) -> Bool {
            // The header has more lines if a list of protocols or a `where` is long.
            let header = lines[...max(opening, 0)].reversed().prefix(8).first { line in
                line.column == column - 4 && Self.types.contains { line.text.contains($0) }
            }
            return header?.text.prefixMatch(of: Self.visible) != nil
        }

        func documentedProperties(_ lines: [Line]) -> Set<String> {
            var (found, isDocumented): (Set<String>, Bool) = ([], false)
            for line in lines[(opening + 1)...] where !line.text.isEmpty {
                if line.column < column { break }
                guard line.column == column else { continue }
                if line.isComment {
                    isDocumented = isDocumented || line.isDocumentation
                    continue
                }
                if let property = line.text.prefixMatch(of: Self.property) {
                    if isDocumented { found.insert(String(property.1)) }
                } else if line.text.utf8.first == UInt8(ascii: "@") {
                    continue
                }
                isDocumented = false
            }
            return found
        }

        nonisolated(unsafe) private static let property = #/(?:@?\w+(?:\([^)]*\))? )*?(?:let|var) `?(\w+)/#
        nonisolated(unsafe) private static let visible = #/(?:@\w+ )*(?:public|package) (?:protocol|extension) /#
        private static let types = ["struct ", "class ", "enum ", "actor ", "protocol ", "extension "]
    }
}
