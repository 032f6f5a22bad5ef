public import ReelCore

/// A recorded editing session: the edits of any number of authors in a text, and the text at the end.
public struct EditingSession: Sendable {
    /// One change by one author.
    public struct Edit: Equatable, Sendable {
        /// The author, counted from 0.
        public var author: Int
        /// The number of earlier edits of this author.
        public var op: Op
        /// The author knew all edits up to this one, and only the own edits after it; −1: none.
        public var base: Int
        /// The index of the edit in the file.
        public var index: Int
        /// The patches in order; each sees the result of the earlier ones.
        public var patches: [Patch]
    }

    /// A position in the text, the number of removed scalars, and the inserted text.
    public struct Patch: Equatable, Sendable {
        /// The number of Unicode scalars before the position.
        public var offset: Int64
        /// The number of Unicode scalars to remove.
        public var removed: Int64
        /// The text to insert.
        public var text: String
    }

    /// The number of authors.
    public private(set) var authors = 1
    /// The text before the first edit.
    public private(set) var startText = ""
    /// The text after the last edit, as the authors' editors had it.
    public private(set) var endText = ""
    /// The edits, in an order in which each comes after all edits that its author had seen.
    public private(set) var edits: [Edit] = []

    /// The number of patches in all edits.
    public var patchCount: Int {
        edits.reduce(0) { $0 + $1.patches.count }
    }
}

// MARK: Reading

extension EditingSession {
    /// The largest number of authors of a session.
    public static let authorsMax = 64
    /// The largest number of edits of a session.
    public static let editsMax = 1_000_000
    /// The largest unpacked size of a packed file, in bytes.
    private static let unpackedMax = 1 << 29

    /// Reads a file of the published `editing-traces`, packed by gzip or not. It is an object with `endContent`,
    /// perhaps `startContent`, and `txns`. Each of these has `patches`. In a concurrent session each has `agent` and
    /// `parents`, too. A transaction without `parents` follows the one before it.
    ///
    /// Throws `bad_json`, and `bad_event` for a file of another shape or a session above the limits.
    public init(file: [UInt8]) throws(ReelError) {
        var bytes = file
        if file.starts(with: Gzip.magic) {
            guard let unpacked = Gzip.unpacked(file, limit: Self.unpackedMax) else {
                throw ReelError(
                    .badJSON,
                    "found a damaged gzip file, or one with more than \(Self.unpackedMax >> 20) MiB; expected a packed"
                        + " editing session: copy the file again"
                )
            }
            bytes = unpacked
        }
        try bytes.withUnsafeBufferPointer { (bytes) throws(ReelError) in try read(Bytes(bytes)) }
    }

    private mutating func read(_ bytes: Bytes) throws(ReelError) {
        var reader = JSONReader(bytes, levels: 8, shape: .badEvent)
        var transactions: [Transaction] = []
        var (hasEnd, hasEdits) = (false, false)
        try reader.object { (reader, key) throws(ReelError) in
            switch key.raw {
            case "startContent": startText = try reader.string()
            case "endContent":
                endText = try reader.string()
                hasEnd = true
            case "txns":
                try reader.array { (reader) throws(ReelError) in
                    guard transactions.count < Self.editsMax else {
                        throw reader.mismatch("found more than \(Self.editsMax) edits, expected at most that many")
                    }
                    transactions.append(try Transaction(&reader))
                }
                hasEdits = true
            default: try reader.skip()
            }
        }
        try reader.end()
        guard hasEnd, hasEdits else {
            throw reader.mismatch(
                "found no \(hasEnd ? "txns" : "endContent"), expected a recorded editing session, which has both"
            )
        }
        try order(transactions)
    }

    /// Computes the order of the edits in a log, and op and base of each edit: which edits its author knew. A
    /// transaction without patches is no edit, but its author knows its parents.
    private mutating func order(_ transactions: [Transaction]) throws(ReelError) {
        let agents = Set(transactions.map(\.agent)).sorted()
        guard agents.count <= Self.authorsMax else {
            throw ReelError(
                .badEvent,
                "found edits of \(agents.count) authors, expected at most \(Self.authorsMax)"
            )
        }
        authors = max(1, agents.count)
        let author = Dictionary(uniqueKeysWithValues: agents.enumerated().map { ($1, $0) })
        let entries = transactions.enumerated().map { index, transaction in
            EditOrder.Entry(
                author: author[transaction.agent] ?? 0,
                parents: transaction.parents ?? (index > 0 ? [index - 1] : [])
            )
        }
        let order = try EditOrder(entries, authors: authors)
        var ops = [Op](repeating: 0, count: authors)
        // For each author: the first position of the order that holds an unknown edit.
        var unknown = [Int](repeating: 0, count: authors)
        // For each position: the number of edits before it.
        var before: [Int] = []
        for (position, index) in order.sequence.enumerated() {
            let author = entries[index].author
            while unknown[author] < position {
                let other = order.sequence[unknown[author]]
                guard entries[other].author == author || order.knows(index, other) else { break }
                unknown[author] += 1
            }
            before.append(edits.count)
            let patches = transactions[index].patches
            guard !patches.isEmpty else { continue }
            let base = before[unknown[author]] - 1
            edits.append(Edit(author: author, op: ops[author], base: base, index: index, patches: patches))
            ops[author] += 1
        }
    }

    /// An edit in the form of the file.
    private struct Transaction {
        var agent: Int64 = 0
        /// Nil: the file names none.
        var parents: [Int]?
        var patches: [Patch] = []

        init(_ reader: inout JSONReader) throws(ReelError) {
            try reader.object { (reader, key) throws(ReelError) in
                switch key.raw {
                case "agent": agent = try reader.integer()
                case "parents":
                    var named: [Int] = []
                    try reader.array { (reader) throws(ReelError) in
                        named.append(Int(clamping: try reader.integer()))
                    }
                    parents = named
                case "patches":
                    try reader.array { (reader) throws(ReelError) in patches.append(try Patch(&reader)) }
                default: try reader.skip()
                }
            }
        }
    }
}

extension EditingSession.Patch {
    /// Reads `[offset, removed, "text"]`. A fourth element, the time, is ignored.
    fileprivate init(_ reader: inout JSONReader) throws(ReelError) {
        var (numbers, text): ([Int64], String?) = ([], nil)
        try reader.array { (reader) throws(ReelError) in
            if numbers.count < 2 {
                numbers.append(try reader.integer())
            } else if text == nil {
                text = try reader.string()
            } else {
                try reader.skip()
            }
        }
        guard let text else { throw reader.mismatch("found a short patch, expected [offset, removed, \"text\"]") }
        self.init(offset: numbers[0], removed: numbers[1], text: text)
    }
}
