/// The pairs that a reader copies at a time, so that it is free while the caller looks at them.
struct PairBatch: Sendable {
    /// The bytes of all batches after the first ones.
    private static let bytesMax = 64 << 10

    private var bytes: [UInt8] = []
    private var sizes: [(key: Int, value: Int)] = []
    /// The bytes from which this batch is full. The first one is small, because many iterations end early.
    private var limit = 1 << 10
    private var lastKey = 0..<0

    /// The key to continue at, or after if this is not the first batch.
    private(set) var next: [UInt8]
    /// True until the first batch was read.
    private(set) var isFirst = true

    /// Creates an empty batch for an iteration that begins at a key.
    init(from start: [UInt8]) { next = start }

    /// True if another pair may be added.
    var hasRoom: Bool { bytes.count < limit }

    /// Adds a pair. Returns false if its key does not come after the last one.
    mutating func append(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Bool {
        let isAscending = bytes.withUnsafeBytes { bytes in
            next.withUnsafeBytes { next in
                if !sizes.isEmpty { return KeyOrder.precedes(UnsafeRawBufferPointer(rebasing: bytes[lastKey]), key) }
                return isFirst ? !KeyOrder.precedes(key, next) : KeyOrder.precedes(next, key)
            }
        }
        guard isAscending else { return false }
        lastKey = bytes.count..<(bytes.count + key.count)
        bytes.append(contentsOf: key)
        bytes.append(contentsOf: value)
        sizes.append((key.count, value.count))
        return true
    }

    /// Calls `body` with each pair, in order, until it returns false. Returns false if it did.
    func forEach<E>(
        _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws(E) -> Bool
    ) throws(E) -> Bool {
        try bytes.withUnsafeBufferPointer { bytes throws(E) in
            let all = UnsafeRawBufferPointer(bytes)
            var offset = 0
            for size in sizes {
                let middle = offset + size.key
                let end = middle + size.value
                let key = UnsafeRawBufferPointer(rebasing: all[offset..<middle])
                guard try body(key, UnsafeRawBufferPointer(rebasing: all[middle..<end])) else { return false }
                offset = end
            }
            return true
        }
    }

    /// Empties the batch, to continue after its last pair with a larger one.
    mutating func advance() {
        next = Array(bytes[lastKey])
        isFirst = false
        bytes.removeAll(keepingCapacity: true)
        sizes.removeAll(keepingCapacity: true)
        limit = min(limit * 4, Self.bytesMax)
    }
}
