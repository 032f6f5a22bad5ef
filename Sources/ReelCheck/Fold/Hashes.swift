/// Returns the FNV-1a hash, 64 bits (Fowler, Noll and Vo).
func fnv1a(_ bytes: [UInt8]) -> UInt64 {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in bytes {
        hash ^= UInt64(byte)
        hash &*= 0x100_0000_01b3
    }
    return hash
}

/// Returns the hash after the 64-bit finalizer of MurmurHash3 (Austin Appleby).
func finalized(_ hash: UInt64) -> UInt64 {
    var x = hash
    x ^= x >> 33
    x &*= 0xff51_afd7_ed55_8ccd
    x ^= x >> 33
    x &*= 0xc4ce_b9fe_1a85_ec53
    x ^= x >> 33
    return x
}

/// Returns the MurmurHash2 hash (Austin Appleby) with the seed of Kafka's Java client.
func murmur2(_ bytes: [UInt8]) -> UInt32 {
    let m: UInt32 = 0x5bd1_e995
    var hash = 0x9747_b28c ^ UInt32(truncatingIfNeeded: bytes.count)
    let words = bytes.count / 4
    for word in 0..<words {
        var k: UInt32 = 0
        for index in 0..<4 { k |= UInt32(bytes[word * 4 + index]) << UInt32(8 * index) }
        k &*= m
        k ^= k >> 24
        k &*= m
        hash &*= m
        hash ^= k
    }
    let rest = bytes[(words * 4)...]
    if !rest.isEmpty {
        for (index, byte) in rest.enumerated() { hash ^= UInt32(byte) << UInt32(8 * index) }
        hash &*= m
    }
    hash ^= hash >> 13
    hash &*= m
    hash ^= hash >> 15
    return hash
}

/// Returns the partition, among `partitions`, that contains all records of a key.
func partition(of key: [UInt8], among partitions: Int) -> Int {
    Int(murmur2(key) & 0x7fff_ffff) % partitions
}

/// Returns the hash that identifies a record: of key, a zero byte, value.
func recordHash(key: [UInt8], value: [UInt8]) -> UInt64 {
    fnv1a(key + [0] + value)
}
