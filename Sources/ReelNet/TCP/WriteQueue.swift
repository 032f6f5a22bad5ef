/// A FIFO of bytes to write: shared arrays in order, of which the first may be partly consumed. Nearly always there is
/// one array at most, and every connection has a queue. So the first array needs no separate storage.
struct WriteQueue {
    /// The largest number of bytes that are copied to join small arrays into one write.
    static let chunkBytes = 64 << 10

    /// The number of bytes that wait.
    private(set) var count = 0
    /// The first array; empty only if no bytes wait.
    private var front: [UInt8] = []
    /// The arrays after `front`, from the index `first` on.
    private var others: [[UInt8]] = []
    private var offset: UInt32 = 0
    private var first: UInt16 = 0

    mutating func append(_ bytes: [UInt8]) {
        guard !bytes.isEmpty else { return }
        if count == 0 { front = bytes } else { others.append(bytes) }
        count += bytes.count
    }

    /// Calls `body` with the next bytes in one piece, which is not empty. It is the first array itself if that is the
    /// only one or is large. Otherwise it is as many bytes as fit into `scratch`, joined there.
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

    /// Copies as many bytes as `target` can hold, and returns their number.
    private static func copy(_ bytes: ArraySlice<UInt8>, to target: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(bytes.count, target.count)
        bytes.withUnsafeBytes { target.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
        return count
    }

    /// Drops `bytes` bytes from the front.
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

    /// Drops the first array.
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
