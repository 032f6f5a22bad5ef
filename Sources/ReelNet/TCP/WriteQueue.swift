/// Bytes that wait to be written: shared arrays in order, the first one perhaps half gone. Nearly always there is one,
/// and every connection has a queue: it takes no room of its own.
struct WriteQueue {
    /// What may be copied to join small arrays to one write.
    static let chunkBytes = 64 << 10

    /// The bytes that wait.
    private(set) var count = 0
    /// The next array; empty only if nothing waits.
    private var front: [UInt8] = []
    /// Those behind it, from `first` on.
    private var others: [[UInt8]] = []
    private var offset: UInt32 = 0
    private var first: UInt16 = 0

    mutating func append(_ bytes: [UInt8]) {
        guard !bytes.isEmpty else { return }
        if count == 0 { front = bytes } else { others.append(bytes) }
        count += bytes.count
    }

    /// Lends the next bytes in one piece: the first array itself if it stands alone or is large, else as many as fit
    /// the scratch, joined there. Not empty.
    func withNext<R>(scratch: UnsafeMutableRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> R) -> R {
        if others.isEmpty || front.count - Int(offset) >= scratch.count {
            return front.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[Int(offset)...])) }
        }
        var used = Self.copy(front[Int(offset)...], to: scratch)
        for array in others[Int(first)...] where used < scratch.count {
            used += Self.copy(array[...], to: UnsafeMutableRawBufferPointer(rebasing: scratch[used...]))
        }
        return body(UnsafeRawBufferPointer(rebasing: scratch[..<used]))
    }

    /// Copies as much as there is room for; returns how much that is.
    private static func copy(_ bytes: ArraySlice<UInt8>, to target: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(bytes.count, target.count)
        bytes.withUnsafeBytes { target.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
        return count
    }

    /// Drops so many bytes from the front.
    mutating func consume(_ bytes: Int) {
        count -= bytes
        var left = bytes
        while left > 0 {
            let rest = front.count - Int(offset)
            if left < rest {
                offset += UInt32(left)
                return
            }
            left -= rest
            offset = 0
            advance()
        }
    }

    /// The first array is gone.
    private mutating func advance() {
        guard first < others.count else { return front = [] }
        front = others[Int(first)]
        others[Int(first)] = []
        first += 1
        if first == others.count {
            others = []
            first = 0
        } else if first > 256 {
            others.removeFirst(Int(first))
            first = 0
        }
    }

    mutating func removeAll() {
        self = WriteQueue()
    }
}
