/// Maps a key to its partition. The function is that of Kafka's Java client, so that every producer agrees.
public enum Partition {
    /// Returns `(murmur2(key) & 0x7fffffff) mod partitions`. `partitions` must be at least 1; the readers of frames,
    /// files and settings check it.
    public static func number(ofKey key: Bytes, of partitions: Int) -> Int {
        precondition(partitions > 0, "a log has at least one partition")
        return Int(murmur2(key) & 0x7fff_ffff) % partitions
    }

    /// Returns the hash MurmurHash2, 32 bits, with the seed of Kafka's clients (Austin Appleby, public domain).
    static func murmur2(_ bytes: Bytes) -> UInt32 {
        let multiplier: UInt32 = 0x5bd1_e995
        var hash: UInt32 = 0x9747_b28c ^ UInt32(truncatingIfNeeded: bytes.count)
        let whole = bytes.count & ~3
        for offset in stride(from: 0, to: whole, by: 4) {
            var word = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
            word &*= multiplier
            word ^= word >> 24
            word &*= multiplier
            hash = hash &* multiplier ^ word
        }
        let rest = bytes.count - whole
        if rest > 0 {
            if rest > 2 { hash ^= UInt32(bytes[whole + 2]) << 16 }
            if rest > 1 { hash ^= UInt32(bytes[whole + 1]) << 8 }
            hash = (hash ^ UInt32(bytes[whole])) &* multiplier
        }
        hash ^= hash >> 13
        hash &*= multiplier
        return hash ^ hash >> 15
    }
}
