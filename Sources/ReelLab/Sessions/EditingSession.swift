public import ReelCore

/// A recorded editing session: the edits of one or two people in a text, and the text at the end.
public struct EditingSession: Sendable {
    /// One change by one author.
    public struct Edit: Equatable, Sendable {
        /// The author: 0 or 1.
        public var author: Int
        /// The number of earlier edits of this author.
        public var op: Op
        /// The author knew all edits up to this one, and only the own edits after it; −1: none.
        public var base: Int
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
    /// The largest unpacked size of a packed file, in bytes.
    private static let unpackedMax = 1 << 29

    /// Reads a file of the published `editing-traces`, packed by gzip or not. It is an object with `endContent`,
    /// perhaps `startContent`, and `txns`. Each of these has `patches`, and `agent` and `parents` if two people wrote.
    ///
    /// Throws `bad_json`, and `bad_event` for a file of another shape.
    public init(file: [UInt8]) throws(ReelError) {
        var bytes = file
        if file.starts(with: Gzip.magic) {
            guard let unpacked = Gzip.unpacked(file, limit: Self.unpackedMax) else {
                throw ReelError(.badJSON, "found a damaged gzip file, expected a packed editing session")
            }
            bytes = unpacked
        }
        try bytes.withUnsafeBufferPointer { (bytes) throws(ReelError) in try read(Bytes(bytes)) }
    }

    private mutating func read(_ bytes: Bytes) throws(ReelError) {
        var reader = JSONReader(bytes, levels: 8, shape: .badEvent)
        var transactions: [Transaction] = []
        var hasEnd = false
        try reader.object { (reader, key) throws(ReelError) in
            switch key.raw {
            case "startContent": startText = try reader.string()
            case "endContent":
                endText = try reader.string()
                hasEnd = true
            case "txns":
                try reader.array { (reader) throws(ReelError) in transactions.append(try Transaction(&reader)) }
            default: try reader.skip()
            }
        }
        try reader.end()
        guard hasEnd else { throw reader.mismatch("found no endContent, expected a recorded editing session") }
        try order(transactions)
    }

    /// Computes op and base of each edit: which edits its author knew.
    private mutating func order(_ transactions: [Transaction]) throws(ReelError) {
        authors = (transactions.map(\.agent).max() ?? 0) + 1
        guard authors <= 2 else {
            throw ReelError(.badEvent, "found edits of \(authors) authors, expected at most two")
        }
        var ops: [Op] = [0, 0]
        // For each author: the last known edit of the other, and the first edit of the other that is unknown.
        var known = [-1, -1]
        var unknown = [0, 0]
        for (index, transaction) in transactions.enumerated() {
            let author = transaction.agent
            for parent in transaction.parents {
                guard 0..<index ~= parent else {
                    throw ReelError(.badEvent, "found parent \(parent) of edit \(index), expected one before it")
                }
                if transactions[parent].agent != author { known[author] = max(known[author], parent) }
            }
            while unknown[author] < index,
                transactions[unknown[author]].agent == author || unknown[author] <= known[author]
            {
                unknown[author] += 1
            }
            edits.append(
                Edit(
                    author: author,
                    op: ops[author],
                    base: unknown[author] - 1,
                    patches: transaction.patches
                )
            )
            ops[author] += 1
        }
    }

    /// An edit in the form of the file.
    private struct Transaction {
        var agent = 0
        var parents: [Int] = []
        var patches: [Patch] = []

        init(_ reader: inout JSONReader) throws(ReelError) {
            try reader.object { (reader, key) throws(ReelError) in
                switch key.raw {
                case "agent": agent = Int(try reader.integer())
                case "parents":
                    try reader.array { (reader) throws(ReelError) in parents.append(Int(try reader.integer())) }
                case "patches":
                    try reader.array { (reader) throws(ReelError) in patches.append(try Patch(&reader)) }
                default: try reader.skip()
                }
            }
        }
    }
}

extension EditingSession.Patch {
    /// Reads `[offset, removed, "text"]`.
    fileprivate init(_ reader: inout JSONReader) throws(ReelError) {
        var (numbers, text): ([Int64], String?) = ([], nil)
        try reader.array { (reader) throws(ReelError) in
            if numbers.count < 2 {
                numbers.append(try reader.integer())
            } else if text == nil {
                text = try reader.string()
            } else {
                throw reader.mismatch("found a fourth element of a patch, expected [offset, removed, \"text\"]")
            }
        }
        guard let text else { throw reader.mismatch("found a short patch, expected [offset, removed, \"text\"]") }
        self.init(offset: numbers[0], removed: numbers[1], text: text)
    }
}
