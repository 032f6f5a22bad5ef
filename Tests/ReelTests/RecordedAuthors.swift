import TestSupport

/// A random recorded session: authors who type, delete and paste into one text through a server, and read at random
/// times. The final text is computed by a list of characters of its own, not by the fold.
struct RecordedAuthors {
    /// An edit of the recording.
    struct Entry {
        var author: Int
        var parents: [Int]
        var patches: [(offset: Int, removed: Int, text: String)]
    }

    /// A scalar that was inserted, with the edits that inserted and deleted it.
    private struct Element {
        var scalar: Unicode.Scalar
        var inserter: Int
        var deleters: Set<Int> = []
    }

    private(set) var entries: [Entry] = []
    /// For each edit: the edits that its author knew.
    private var knownEdits: [Set<Int>] = []
    private var elements: [Element] = []

    private static let alphabet = Array("abcdefgh é😀\n\"".unicodeScalars)

    /// Records `edits` edits. The recorded order is that of the server.
    init(authors: Int, edits: Int, seed: UInt64) {
        var random = SeededNumbers(seed)
        var reads = [Int](repeating: 0, count: authors)
        for index in 0..<edits {
            let author = Int.random(in: 0..<authors, using: &random)
            if Bool.random(using: &random) { reads[author] = Int.random(in: reads[author]...index, using: &random) }
            let known = Set((0..<index).filter { $0 < reads[author] || entries[$0].author == author })
            // The edits that no other known edit includes.
            let parents = known.filter { edit in !known.contains { knownEdits[$0].contains(edit) } }.sorted()
            knownEdits.append(known)
            var entry = Entry(author: author, parents: parents, patches: [])
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                entry.patches.append(edit(index, known, &random))
            }
            entries.append(entry)
        }
    }

    /// Returns the edits that the author of an edit knew.
    func known(_ index: Int) -> Set<Int> { knownEdits[index] }

    /// Returns the authors and parents of the edits in another order: each edit after its parents, otherwise random.
    func shuffled(seed: UInt64) -> [(author: Int, parents: [Int])] {
        var random = SeededNumbers(seed)
        var order: [Int] = []
        while order.count < entries.count {
            let ready = entries.indices.filter { !order.contains($0) && knownEdits[$0].isSubset(of: order) }
            order += ready.randomElement(using: &random).map { [$0] } ?? []
        }
        return order.map { index in
            (entries[index].author, entries[index].parents.compactMap { order.firstIndex(of: $0) })
        }
    }

    /// The final text.
    var text: String {
        var text = ""
        text.unicodeScalars.append(contentsOf: elements.filter(\.deleters.isEmpty).map(\.scalar))
        return text
    }

    /// The session as a file of `editing-traces`.
    var file: [UInt8] {
        let lines = entries.map { entry in
            let patches = entry.patches.map { "[\($0.offset),\($0.removed),\(Self.quoted($0.text))]" }
            let members = #""agent":\#(entry.author),"parents":\#(entry.parents)"#
            return #"{\#(members),"patches":[\#(patches.joined(separator: ","))]}"#
        }
        return Array(#"{"endContent":\#(Self.quoted(text)),"txns":[\#(lines.joined(separator: ","))]}"#.utf8)
    }

    /// Makes a random patch of an edit in the list of scalars.
    private mutating func edit(
        _ index: Int,
        _ known: Set<Int>,
        _ random: inout SeededNumbers
    ) -> (offset: Int, removed: Int, text: String) {
        func isVisible(_ edit: Int) -> Bool { edit == index || known.contains(edit) }
        let seen = elements.indices.filter { place in
            isVisible(elements[place].inserter) && !elements[place].deleters.contains(where: isVisible)
        }
        let offset = Int.random(in: 0...seen.count, using: &random)
        let removed = min(seen.count - offset, Int.random(in: 0...4, using: &random) / 2)
        var scalars = (0..<Int.random(in: 0...3, using: &random)).map { _ in
            Self.alphabet.randomElement(using: &random) ?? "x"
        }
        if scalars.isEmpty, removed == 0 { scalars = ["z"] }
        for place in seen[offset...].prefix(removed) { elements[place].deleters.insert(index) }
        let place = offset == 0 ? 0 : seen[offset - 1] + 1
        elements.insert(contentsOf: scalars.map { Element(scalar: $0, inserter: index) }, at: place)
        var text = ""
        text.unicodeScalars.append(contentsOf: scalars)
        return (offset, removed, text)
    }

    private static func quoted(_ text: String) -> String {
        let escaped = text.flatMap { character -> String in
            switch character {
            case "\"": #"\""#
            case "\n": #"\n"#
            default: String(character)
            }
        }
        return #""\#(String(escaped))""#
    }
}
