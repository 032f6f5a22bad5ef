/// The subset of YAML that the files of this project use. It has maps and lists by indentation, plain and double-quoted
/// scalars on one line, lists in brackets, anchors, aliases, and `<<`. Any other YAML is an error.
indirect enum YAML: Equatable {
    case map([String: YAML])
    case list([YAML])
    /// Any scalar as it is written; an empty scalar is "".
    case text(String)

    struct Fault: Error, CustomStringConvertible {
        let description: String
    }

    init(_ text: String) throws(Fault) {
        var reader = YAMLReader(text)
        self = try reader.document()
    }

    subscript(key: String) -> YAML? {
        if case .map(let members) = self { members[key] } else { nil }
    }

    var members: [String: YAML] {
        if case .map(let members) = self { members } else { [:] }
    }

    var items: [YAML] {
        if case .list(let items) = self { items } else { [] }
    }

    var string: String? {
        if case .text(let text) = self { text } else { nil }
    }

    var strings: [String] { items.compactMap(\.string) }
}

private struct YAMLReader {
    private struct Line {
        var number: Int
        var indent: Int
        var text: Substring
    }

    private var lines: [Line] = []
    private var next = 0
    private var anchors: [String: YAML] = [:]

    init(_ text: String) {
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let content = line.drop { $0 == " " }
            if content.isEmpty || content.hasPrefix("#") { continue }
            lines.append(Line(number: index + 1, indent: line.count - content.count, text: content))
        }
    }

    mutating func document() throws(YAML.Fault) -> YAML {
        let value = try block(indent: 0)
        if next < lines.count { throw fault("an indentation that fits nothing") }
        return value
    }

    private func fault(_ what: String) -> YAML.Fault {
        let place = next < lines.count ? "line \(lines[next].number): `\(lines[next].text)`" : "the end"
        return YAML.Fault(description: "\(place): \(what)")
    }

    /// Returns the map or list whose lines have this indentation.
    private mutating func block(indent: Int) throws(YAML.Fault) -> YAML {
        guard next < lines.count, lines[next].indent == indent else { return .text("") }
        return lines[next].text.hasPrefix("- ") ? try list(indent: indent) : try map(indent: indent)
    }

    private mutating func list(indent: Int) throws(YAML.Fault) -> YAML {
        var items: [YAML] = []
        while next < lines.count, lines[next].indent == indent, lines[next].text.hasPrefix("- ") {
            let content = lines[next].text.dropFirst(2)
            if Self.key(content) != nil {
                // This is the first member of a map. The line is read as if the dash were a space.
                lines[next].text = content
                lines[next].indent += 2
                items.append(try map(indent: indent + 2))
            } else {
                items.append(try scalar(content))
                next += 1
            }
        }
        return .list(items)
    }

    private mutating func map(indent: Int) throws(YAML.Fault) -> YAML {
        var members: [String: YAML] = [:]
        var merged: [String: YAML] = [:]
        while next < lines.count, lines[next].indent == indent {
            guard let (key, rest) = Self.key(lines[next].text) else { throw fault("no `key: value`") }
            var (value, anchor) = (rest, String?.none)
            if rest.hasPrefix("&") {
                let words = rest.dropFirst().split(separator: " ", maxSplits: 1)
                (anchor, value) = (words.first.map(String.init), words.count > 1 ? words[1] : "")
            }
            let content: YAML
            if value.isEmpty {
                next += 1
                let inner = next < lines.count ? lines[next].indent : 0
                let isList = inner == indent && lines[min(next, lines.count - 1)].text.hasPrefix("- ")
                content = inner > indent || isList ? try block(indent: inner) : .text("")
            } else {
                content = try scalar(value)
                next += 1
            }
            if let anchor { anchors[anchor] = content }
            if key == "<<" {
                merged = content.members
            } else if members.updateValue(content, forKey: key) != nil {
                throw YAML.Fault(description: "the key \(key) twice, above \(fault("").description)")
            }
        }
        return .map(merged.merging(members) { $1 })
    }

    /// Returns the key and the rest of `key: rest` or `key:`. A comment at the end is not supported.
    private static func key(_ text: Substring) -> (String, Substring)? {
        guard let match = text.wholeMatch(of: /([A-Za-z0-9_.<-]+):(?: +(.*))?/) else { return nil }
        return (String(match.1), match.2 ?? "")
    }

    private func scalar(_ text: Substring) throws(YAML.Fault) -> YAML {
        if text.hasPrefix("*") {
            guard let value = anchors[String(text.dropFirst())] else { throw fault("an alias without its anchor") }
            return value
        }
        if text.hasPrefix("\"") || text.hasPrefix("[") {
            guard let (value, rest) = quoted(text) ?? bracketed(text), rest.isEmpty else {
                throw fault("no whole quoted text or list of such")
            }
            return value
        }
        let unusual = ["{", "|", ">", "'", "!", "%", "@", "`", "&", "?"].contains { text.hasPrefix($0) }
        if unusual || text.contains(" #") || text.contains(": ") || text.hasSuffix(":") {
            throw fault("YAML that this reader does not know")
        }
        return .text(String(text))
    }

    private func quoted(_ text: Substring) -> (YAML, Substring)? {
        guard let match = text.prefixMatch(of: /"([^"\\]*)"/) else { return nil }
        return (.text(String(match.1)), text[match.range.upperBound...])
    }

    private func bracketed(_ text: Substring) -> (YAML, Substring)? {
        guard text.hasPrefix("[") else { return nil }
        var (items, rest) = ([YAML](), text.dropFirst())
        while let (item, behind) = quoted(rest) {
            items.append(item)
            rest = behind
            guard rest.hasPrefix(", ") else { break }
            rest = rest.dropFirst(2)
        }
        return rest.hasPrefix("]") ? (.list(items), rest.dropFirst()) : nil
    }
}
