internal import ReelBase
internal import ReelCore

/// A sorted map of keys to values in chunks. A copy shares all chunks, and a change copies only the chunk that it
/// touches.
struct SortedPairs: Sendable {
    /// The number of pairs from which a chunk is split.
    private static let chunkPairsMax = 256

    /// A part of the map: at least one pair, sorted.
    private struct Chunk: Sendable {
        var keys: [[UInt8]]
        var values: [[UInt8]]
    }

    /// The index of a pair, or the place for a key that is absent.
    private struct Place {
        var chunk: Int
        var pair: Int
    }

    private var chunks: [Chunk] = []

    /// Returns the value of a key; nil if the key is absent.
    func value(for key: [UInt8]) -> [UInt8]? {
        let place = place(of: key)
        return holds(key, at: place) ? chunks[place.chunk].values[place.pair] : nil
    }

    /// Calls `body` with each pair in `start..<end`, in order, until it returns false.
    func forEach(
        from start: [UInt8],
        to end: [UInt8],
        _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws(ReelError) -> Bool
    ) throws(ReelError) {
        var place = place(of: start)
        while place.chunk < chunks.count {
            let chunk = chunks[place.chunk]
            for index in place.pair..<chunk.keys.count {
                guard KeyOrder.precedes(chunk.keys[index], end) else { return }
                guard try Self.call(body, chunk.keys[index], chunk.values[index]) else { return }
            }
            place = Place(chunk: place.chunk + 1, pair: 0)
        }
    }

    /// Applies one change.
    mutating func apply(_ change: StorageChanges.Change) {
        switch change {
        case .put(let key, let value): put(key, value)
        case .remove(let key): remove(key)
        case .removeRange(let start, let end): removeRange(from: start, to: end)
        }
    }

    // MARK: Changes

    private mutating func put(_ key: [UInt8], _ value: [UInt8]) {
        var place = place(of: key)
        if holds(key, at: place) {
            chunks[place.chunk].values[place.pair] = value
            return
        }
        // A key after all others belongs to the end of the last chunk.
        if place.chunk == chunks.count {
            guard let last = chunks.last else { return chunks.append(Chunk(keys: [key], values: [value])) }
            place = Place(chunk: chunks.count - 1, pair: last.keys.count)
        }
        chunks[place.chunk].keys.insert(key, at: place.pair)
        chunks[place.chunk].values.insert(value, at: place.pair)
        if chunks[place.chunk].keys.count > Self.chunkPairsMax { split(place) }
    }

    /// Splits a chunk that has become too large by the pair at `place`.
    private mutating func split(_ place: Place) {
        let chunk = chunks[place.chunk]
        // Ascending keys leave full chunks.
        let isLast = place.chunk == chunks.count - 1 && place.pair == chunk.keys.count - 1
        let middle = isLast ? place.pair : chunk.keys.count / 2
        let (keys, values) = (Array(chunk.keys[middle...]), Array(chunk.values[middle...]))
        chunks[place.chunk].keys.removeSubrange(middle...)
        chunks[place.chunk].values.removeSubrange(middle...)
        chunks.insert(Chunk(keys: keys, values: values), at: place.chunk + 1)
    }

    private mutating func remove(_ key: [UInt8]) {
        let place = place(of: key)
        guard holds(key, at: place) else { return }
        if chunks[place.chunk].keys.count == 1 {
            chunks.remove(at: place.chunk)
        } else {
            chunks[place.chunk].keys.remove(at: place.pair)
            chunks[place.chunk].values.remove(at: place.pair)
        }
    }

    private mutating func removeRange(from start: [UInt8], to end: [UInt8]) {
        guard KeyOrder.precedes(start, end) else { return }
        let (first, last) = (place(of: start), place(of: end))
        guard first.chunk < chunks.count else { return }
        if first.chunk == last.chunk {
            drop(first.pair..<last.pair, of: first.chunk)
        } else {
            if last.chunk < chunks.count { drop(0..<last.pair, of: last.chunk) }
            drop(first.pair..<chunks[first.chunk].keys.count, of: first.chunk)
            chunks.removeSubrange((first.chunk + 1)..<last.chunk)
        }
        chunks.removeAll { $0.keys.isEmpty }
    }

    private mutating func drop(_ pairs: Range<Int>, of chunk: Int) {
        guard !pairs.isEmpty else { return }
        chunks[chunk].keys.removeSubrange(pairs)
        chunks[chunk].values.removeSubrange(pairs)
    }

    // MARK: Search

    private func holds(_ key: [UInt8], at place: Place) -> Bool {
        place.chunk < chunks.count && chunks[place.chunk].keys[place.pair] == key
    }

    /// Returns the place of the first pair whose key is not before `key`. Its chunk is the number of chunks if there is
    /// no such pair.
    private func place(of key: [UInt8]) -> Place {
        let chunk = chunks.partitioningIndex { chunk in chunk.keys.last.map { KeyOrder.precedes($0, key) } ?? true }
        guard chunk < chunks.count else { return Place(chunk: chunk, pair: 0) }
        return Place(chunk: chunk, pair: chunks[chunk].keys.partitioningIndex { KeyOrder.precedes($0, key) })
    }

    private static func call(
        _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws(ReelError) -> Bool,
        _ key: [UInt8],
        _ value: [UInt8]
    ) throws(ReelError) -> Bool {
        try key.withUnsafeBufferPointer { key throws(ReelError) in
            try value.withUnsafeBufferPointer { value throws(ReelError) in
                try body(UnsafeRawBufferPointer(key), UnsafeRawBufferPointer(value))
            }
        }
    }
}
