/// Bytes that wait to be written: shared arrays in order, the first one perhaps half gone.
struct WriteQueue {
    /// What may be copied to join small arrays to one write.
    static let chunkBytes = 64 << 10

    private var arrays: [[UInt8]] = []
    private var first = 0
    private var offset = 0
    /// The bytes that wait.
    private(set) var count = 0

    mutating func append(_ bytes: [UInt8]) {
        guard !bytes.isEmpty else { return }
        arrays.append(bytes)
        count += bytes.count
    }

    /// Lends the next bytes in one piece: the first array itself if it stands alone or is large, else as many as fit
    /// the scratch, joined there. Not empty.
    func withNext<R>(scratch: UnsafeMutableRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> R) -> R {
        let isAlone = first + 1 == arrays.count
        if isAlone || arrays[first].count - offset >= scratch.count {
            return arrays[first].withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[offset...])) }
        }
        var used = 0
        var skip = offset
        for array in arrays[first...] {
            let part = min(array.count - skip, scratch.count - used)
            array.withUnsafeBytes {
                UnsafeMutableRawBufferPointer(rebasing: scratch[used...]).copyMemory(
                    from: UnsafeRawBufferPointer(rebasing: $0[skip..<skip + part])
                )
            }
            used += part
            skip = 0
            if used == scratch.count { break }
        }
        return body(UnsafeRawBufferPointer(rebasing: scratch[..<used]))
    }

    /// Drops so many bytes from the front.
    mutating func consume(_ bytes: Int) {
        count -= bytes
        var left = bytes
        while left > 0 {
            let rest = arrays[first].count - offset
            if left < rest {
                offset += left
                return
            }
            left -= rest
            offset = 0
            arrays[first] = []
            first += 1
        }
        if first == arrays.count {
            arrays.removeAll(keepingCapacity: arrays.count <= 16)
            first = 0
        } else if first > 256 {
            arrays.removeFirst(first)
            first = 0
        }
    }

    mutating func removeAll() {
        self = WriteQueue()
    }
}
