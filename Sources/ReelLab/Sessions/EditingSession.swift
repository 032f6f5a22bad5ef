public import ReelCore

/// A recorded editing session: what one or two people typed into a text, edit by edit, and how the text ended.
public struct EditingSession: Sendable {
    /// What one author changed at once.
    public struct Edit: Equatable, Sendable {
        /// Which author: 0 or 1.
        public var author: Int
        /// How many edits of this author came before.
        public var op: Op
        /// The author knew all edits up to this one, and of those behind it only the own; −1: none.
        public var base: Int
        /// One after the other; each sees the ones before.
        public var patches: [Patch]
    }

    /// A place in the text, what goes there and what comes.
    public struct Patch: Equatable, Sendable {
        /// How many Unicode scalars stand before it.
        public var offset: Int64
        /// How many Unicode scalars it removes.
        public var removed: Int64
        /// What it inserts.
        public var text: String
    }

    /// How many authors there are.
    public private(set) var authors = 1
    /// The text before the first edit.
    public private(set) var startText = ""
    /// The text behind the last edit, as the authors' editors had it.
    public private(set) var endText = ""
    /// In an order in which each stands behind what its author had seen.
    public private(set) var edits: [Edit] = []

    /// How many patches there are in all edits.
    public var patchCount: Int {
        edits.reduce(0) { $0 + $1.patches.count }
    }
}

// MARK: Reading

extension EditingSession {
    /// What may come out of a packed file, in bytes.
    private static let unpackedMax = 1 << 29

    /// Reads a file of the published `editing-traces`, packed by gzip or not: an object with `endContent`, perhaps
    /// `startContent`, and `txns`, each with `patches` and, where two people wrote, `agent` and `parents`.
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

    /// Finds out who knew what.
    private mutating func order(_ transactions: [Transaction]) throws(ReelError) {
        authors = (transactions.map(\.agent).max() ?? 0) + 1
        guard authors <= 2 else {
            throw ReelError(.badEvent, "found edits of \(authors) authors, expected at most two")
        }
        var ops: [Op] = [0, 0]
        // Per author: the last foreign edit known, and the first edit that is foreign and unknown.
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

    /// An edit as it stands in the file.
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
