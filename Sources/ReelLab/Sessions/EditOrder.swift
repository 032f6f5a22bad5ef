internal import ReelCore

/// The order of a session's edits in one log.
///
/// An author of Reel knows a beginning of the log, and the own edits. So there must be a moment before each edit at
/// which the log has all edits of other authors that the author knows, and none that the author does not know. The
/// author **reads** at that moment. The order has such a moment for every edit. It is the recorded order if that one
/// has these moments, too.
struct EditOrder {
    /// An edit without its content.
    struct Entry {
        /// The author, counted from 0.
        var author: Int
        /// The indices of the edits whose merged texts the author has changed.
        var parents: [Int]
    }

    /// The indices of the entries, in the order of the log.
    private(set) var sequence: [Int] = []
    private let entries: [Entry]
    private let authors: Int
    /// The number of each edit among the edits of its author.
    private var numbers: [Int] = []
    /// For each edit: how many edits of each author were known to its author.
    private var known: [[Int32]] = []
    /// The edits of each author.
    private var edits: [[Int]]
    /// For each author: the number of own edits in the sequence.
    private var placed: [Int]
    /// For each author: the number of own edits before which the author has read.
    private var read: [Int]

    /// Computes the order.
    ///
    /// Throws `bad_event` if an edit names a parent that is not before it, if an author did not know an own earlier
    /// edit, or if there is no order.
    init(_ entries: [Entry], authors: Int) throws(ReelError) {
        (self.entries, self.authors) = (entries, authors)
        edits = Array(repeating: [], count: authors)
        placed = Array(repeating: 0, count: authors)
        read = placed
        for index in entries.indices { try learn(index) }
        while sequence.count < entries.count {
            for author in 0..<authors { readAll(author) }
            let next = try next()
            sequence.append(next)
            placed[entries[next].author] += 1
        }
    }

    /// Returns true if the author of an edit knew another edit.
    func knows(_ edit: Int, _ other: Int) -> Bool {
        Int(known[edit][entries[other].author]) > numbers[other]
    }

    /// Computes what the author of an edit knew.
    private mutating func learn(_ index: Int) throws(ReelError) {
        let entry = entries[index]
        var counts = [Int32](repeating: 0, count: authors)
        for parent in entry.parents {
            guard 0..<index ~= parent else {
                throw ReelError(.badEvent, "found parent \(parent) of edit \(index), expected an edit before it")
            }
            for author in 0..<authors { counts[author] = max(counts[author], known[parent][author]) }
            let author = entries[parent].author
            counts[author] = max(counts[author], Int32(numbers[parent] + 1))
        }
        let own = edits[entry.author]
        guard counts[entry.author] == own.count else {
            throw ReelError(
                .badEvent,
                "found edit \(index), which does not follow edit \(own[own.count - 1]) of the same author; expected"
                    + " authors who know all own edits: record concurrent edits of a person as two authors"
            )
        }
        numbers.append(own.count)
        known.append(counts)
        edits[entry.author].append(index)
    }

    /// Lets an author read before as many own edits as the present sequence allows.
    private mutating func readAll(_ author: Int) {
        while let edit = unread(author), knowsExactlyTheSequence(edit) { read[author] += 1 }
    }

    /// Returns the first edit before which the author has not read yet; nil if there is none.
    private func unread(_ author: Int) -> Int? {
        read[author] < edits[author].count ? edits[author][read[author]] : nil
    }

    /// Returns true if the sequence has the edits of other authors that the edit's author knew, and no others.
    private func knowsExactlyTheSequence(_ edit: Int) -> Bool {
        (0..<authors).allSatisfy { $0 == entries[edit].author || Int(known[edit][$0]) == placed[$0] }
    }

    /// Returns the first recorded edit that may be the next one. Its author has read, and no other author has to read
    /// before it.
    private func next() throws(ReelError) -> Int {
        var best: Int?
        for author in 0..<authors where placed[author] < read[author] {
            let edit = edits[author][placed[author]]
            if edit < best ?? .max, blocker(of: edit) == nil { best = edit }
        }
        if let best { return best }
        throw contradiction()
    }

    /// Returns an edit whose author has to read before this edit; nil if there is none.
    private func blocker(of edit: Int) -> Int? {
        let author = entries[edit].author
        for other in 0..<authors where other != author {
            if let unread = unread(other), Int(known[unread][author]) == placed[author] { return unread }
        }
        return nil
    }

    /// Returns the error of a session that no log can hold. The first edit that is missing in the sequence has been
    /// read, because all edits that it knows were recorded before it. So another author has to read before it.
    private func contradiction() -> ReelError {
        let heads = (0..<authors).compactMap { placed[$0] < edits[$0].count ? edits[$0][placed[$0]] : nil }
        let first = heads.min() ?? 0
        let reader = blocker(of: first) ?? first
        return ReelError(
            .badEvent,
            "found edit \(reader), whose author did not know edit \(first), but knew edits that must follow it;"
                + " expected a session whose edits have one order in which each author knows a beginning: record it"
                + " through one server"
        )
    }
}
