import ReelBase

/// The entries of a queue, ordered by their numbers.
///
/// The entries are kept in chunks. Finding an entry costs the logarithm of the length. Removing one moves at most one
/// chunk of entries, at any place of the queue. An index is valid until an entry is removed.
struct EntryList: Sendable {
    /// The place of an entry.
    struct Index: Comparable, Sendable {
        fileprivate var chunk: Int
        fileprivate var offset: Int

        static func < (a: Index, b: Index) -> Bool {
            a.chunk != b.chunk ? a.chunk < b.chunk : a.offset < b.offset
        }
    }

    private static let chunkMax = 64

    /// The chunks; none is empty.
    private var chunks: [[Outbox.Entry]] = []
    private(set) var count = 0

    /// Creates an empty list.
    init() {}

    /// Creates a list of entries that are ordered by their numbers.
    init(_ entries: some Sequence<Outbox.Entry>) {
        for entry in entries { append(entry) }
    }

    /// Appends an entry with a number above all others.
    mutating func append(_ entry: Outbox.Entry) {
        count += 1
        if let last = chunks.indices.last, chunks[last].count < Self.chunkMax {
            chunks[last].append(entry)
        } else {
            var chunk: [Outbox.Entry] = []
            chunk.reserveCapacity(Self.chunkMax)
            chunk.append(entry)
            chunks.append(chunk)
        }
    }

    /// Removes an entry.
    mutating func remove(at index: Index) {
        count -= 1
        chunks[index.chunk].remove(at: index.offset)
        if chunks[index.chunk].isEmpty { chunks.remove(at: index.chunk) }
    }

    /// Returns the index of the first entry after `number`.
    func index(behind number: Int64) -> Index {
        let chunk = chunks.partitioningIndex { $0[$0.count - 1].number <= number }
        guard chunk < chunks.count else { return endIndex }
        return Index(chunk: chunk, offset: chunks[chunk].partitioningIndex { $0.number <= number })
    }
}

extension EntryList: BidirectionalCollection, MutableCollection {
    var startIndex: Index { Index(chunk: 0, offset: 0) }
    var endIndex: Index { Index(chunk: chunks.count, offset: 0) }
    var isEmpty: Bool { count == 0 }

    subscript(position: Index) -> Outbox.Entry {
        get { chunks[position.chunk][position.offset] }
        _modify { yield &chunks[position.chunk][position.offset] }
    }

    func index(after index: Index) -> Index {
        index.offset + 1 < chunks[index.chunk].count
            ? Index(chunk: index.chunk, offset: index.offset + 1) : Index(chunk: index.chunk + 1, offset: 0)
    }

    func index(before index: Index) -> Index {
        index.offset > 0
            ? Index(chunk: index.chunk, offset: index.offset - 1)
            : Index(chunk: index.chunk - 1, offset: chunks[index.chunk - 1].count - 1)
    }
}
