import ReelBase

/// A sorted list of objects, in chunks of bounded size. An insertion or removal moves the elements of one chunk only.
///
/// The order must be strict: no two elements are equal in it. A wrong order, such as that of a `<` that contradicts
/// itself, makes removals slow and the place of elements arbitrary.
struct SortedChunks: Sendable {
    /// The size at which a chunk is split in two.
    private static let chunkMax = 512

    private var chunks: [[LoadedObject]]
    private(set) var count: Int
    private let order: ObjectOrder

    /// Creates the list of objects that are sorted already.
    init(sorted objects: [LoadedObject], by order: ObjectOrder) {
        self.order = order
        count = objects.count
        chunks = stride(from: 0, to: objects.count, by: Self.chunkMax / 2).map {
            Array(objects[$0..<min($0 + Self.chunkMax / 2, objects.count)])
        }
    }

    var last: LoadedObject? { chunks.last?.last }

    mutating func insert(_ object: LoadedObject) {
        count += 1
        if chunks.isEmpty { return chunks.append([object]) }
        let chunk = self.chunk(for: object)
        chunks[chunk].insert(object, at: position(of: object, in: chunk))
        guard chunks[chunk].count > Self.chunkMax else { return }
        let upper = Array(chunks[chunk][(Self.chunkMax / 2)...])
        chunks[chunk].removeSubrange((Self.chunkMax / 2)...)
        chunks.insert(upper, at: chunk + 1)
    }

    /// Removes this very object. Has no effect if it is not in the list.
    mutating func remove(_ object: LoadedObject) {
        guard let (chunk, index) = find(object) else { return }
        count -= 1
        chunks[chunk].remove(at: index)
        if chunks[chunk].isEmpty { chunks.remove(at: chunk) }
    }

    private func find(_ object: LoadedObject) -> (chunk: Int, index: Int)? {
        if chunks.isEmpty { return nil }
        let chunk = self.chunk(for: object)
        let index = position(of: object, in: chunk)
        if index < chunks[chunk].count, chunks[chunk][index] === object { return (chunk, index) }
        for chunk in chunks.indices {
            if let index = chunks[chunk].firstIndex(where: { $0 === object }) { return (chunk, index) }
        }
        return nil
    }

    /// Returns the first objects, at most `count`.
    func first(_ count: Int) -> [LoadedObject] {
        var objects: [LoadedObject] = []
        objects.reserveCapacity(min(count, self.count))
        for chunk in chunks where objects.count < count { objects += chunk.prefix(count - objects.count) }
        return objects
    }

    /// Calls `body` with each object in order, beginning with the first one for which `isBefore` returns false, until
    /// `body` returns false.
    ///
    /// - Parameters:
    ///   - isBefore: returns true for the objects at the beginning of the list that are left out; nil: none is.
    ///   - body: gets an object.
    /// - Throws: The error of a closure.
    func forEach(
        after isBefore: ((LoadedObject) throws -> Bool)? = nil,
        _ body: (LoadedObject) throws -> Bool
    ) throws {
        var (first, skipped) = (0, 0)
        if let isBefore {
            first = try chunks.partitioningIndex { try $0.last.map(isBefore) ?? true }
            if first < chunks.count { skipped = try chunks[first].partitioningIndex(where: isBefore) }
        }
        for chunk in chunks[first...] {
            for object in chunk.dropFirst(skipped) where try !body(object) { return }
            skipped = 0
        }
    }

    /// Returns the chunk in which an object is or belongs.
    private func chunk(for object: LoadedObject) -> Int {
        let chunk = chunks.partitioningIndex { chunk in chunk.last.map { order.precedes($0, object) } ?? true }
        return min(chunk, chunks.count - 1)
    }

    private func position(of object: LoadedObject, in chunk: Int) -> Int {
        chunks[chunk].partitioningIndex { order.precedes($0, object) }
    }
}
