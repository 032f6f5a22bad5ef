/// The fields of a doc comment that Swift gives a meaning: parameters and errors.
struct DocComment: Equatable {
    struct Item: Equatable {
        var name: String
        /// The text after the colon, in one line.
        var text: String
    }

    /// The items of `- Parameters:`, and each `- Parameter name:`.
    private(set) var parameters: [Item] = []
    /// The text of `- Throws:`; nil without this field.
    private(set) var errors: String?
    /// The names of the members with another comment that this one refers to: `read` for “see `EventLog.read`”.
    private(set) var references: Set<String> = []

    /// Creates a comment without fields.
    init() {}

    /// Reads a comment.
    ///
    /// - Parameter lines: the lines after their `///`.
    init(_ lines: some Sequence<Substring>) {
        var field = Field.text
        for line in lines {
            if line.utf8.contains(UInt8(ascii: "`")) {
                references.formUnion(line.matches(of: Self.reference).map { String($0.1) })
            }
            let isItem = line.utf8.first { $0 != UInt8(ascii: " ") } == UInt8(ascii: "-")
            if !isItem {
                extend(field, with: line)
                if line.utf8.allSatisfy({ $0 == UInt8(ascii: " ") }) { field = .text }
            } else if line.wholeMatch(of: #/ ?- Parameters: */#) != nil {
                field = .parameters
            } else if let start = line.prefixMatch(of: #/ ?- Parameter +`?(\w+)`?:/#) {
                parameters.append(Item(name: String(start.1), text: Self.plain(line[start.range.upperBound...])))
                field = .parameter
            } else if let start = line.prefixMatch(of: #/ ?- Throws:/#) {
                errors = Self.plain(line[start.range.upperBound...])
                field = .errors
            } else if line.prefixMatch(of: #/ ?- \w+:/#) != nil {
                field = .text
            } else if field == .parameters, let item = line.prefixMatch(of: #/  +- `?(\w+)`?:/#) {
                parameters.append(Item(name: String(item.1), text: Self.plain(line[item.range.upperBound...])))
            } else {
                extend(field, with: line)
            }
        }
    }

    private enum Field { case text, parameters, parameter, errors }

    /// Adds a line to the field that began before it.
    private mutating func extend(_ field: Field, with line: Substring) {
        switch field {
        case .text: break
        case .errors: errors = Self.plain((errors ?? "") + " " + line)
        case .parameters, .parameter:
            guard let last = parameters.indices.last else { return }
            parameters[last].text = Self.plain(parameters[last].text + " " + line)
        }
    }

    // A regular expression in a function is compiled at each call.
    nonisolated(unsafe) private static let reference = #/\bsee `\w+\.(\w+)`/#

    private static func plain(_ text: some StringProtocol) -> String {
        text.split(separator: " ").joined(separator: " ")
    }
}
