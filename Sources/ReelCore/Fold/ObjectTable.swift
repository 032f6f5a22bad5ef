#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The objects and tombstones of a stream by model and id: a hash table with open addressing over slots. A slot keeps
/// its number while its object exists.
struct ObjectTable: Sendable {
    /// All slots; those that hold nothing are `free`.
    private(set) var slots: [FoldedObject] = []
    private var freeSlots: [Int] = []
    /// Slot numbers by hash, −1 for an empty entry. The count is a power of two, and the table is at most half full.
    private var index = [Int32](repeating: -1, count: 16)

    /// The number of objects and tombstones.
    var count: Int { slots.count - freeSlots.count }

    subscript(slot: Int) -> FoldedObject {
        _read { yield slots[slot] }
        _modify { yield &slots[slot] }
    }

    /// Returns the slot of an object or tombstone; nil if there is neither.
    func find(model: Bytes, id: Bytes) -> Int? {
        let hash = Self.hash(model, id)
        let mask = index.count - 1
        var at = Int(truncatingIfNeeded: hash) & mask
        while index[at] >= 0 {
            let slot = Int(index[at])
            if slots[slot].hash == hash, Self.matches(slots[slot].key, model, id) { return slot }
            at = (at + 1) & mask
        }
        return nil
    }

    /// Adds a living object without fields, and returns its slot. The table must not contain the key yet.
    mutating func insert(model: Bytes, id: Bytes, seq: Seq) -> Int {
        insert(Self.object(model: model, id: id, seq: seq))
    }

    /// Returns a living object without fields that is in no table yet.
    static func object(model: Bytes, id: Bytes, seq: Seq) -> FoldedObject {
        var key = [UInt8]()
        key.reserveCapacity(model.count + 1 + id.count)
        key.append(contentsOf: model)
        key.append(0)
        key.append(contentsOf: id)
        return FoldedObject(key: key, hash: hash(model, id), seq: seq)
    }

    /// Adds an object or tombstone, and returns its slot. The table must not contain the key yet.
    mutating func insert(_ object: FoldedObject) -> Int {
        if (count + 1) * 2 > index.count { grow() }
        let slot: Int
        if let free = freeSlots.popLast() {
            slot = free
            slots[free] = object
        } else {
            slot = slots.count
            slots.append(object)
        }
        addToIndex(slot)
        return slot
    }

    /// Removes an object or tombstone from the table.
    mutating func remove(_ slot: Int) {
        let mask = index.count - 1
        var hole = Int(truncatingIfNeeded: slots[slot].hash) & mask
        while index[hole] != Int32(slot) { hole = (hole + 1) & mask }
        // Entries that probing had placed after the hole move back to it.
        var at = (hole + 1) & mask
        while index[at] >= 0 {
            let home = Int(truncatingIfNeeded: slots[Int(index[at])].hash) & mask
            if (at - home) & mask >= (at - hole) & mask {
                index[hole] = index[at]
                hole = at
            }
            at = (at + 1) & mask
        }
        index[hole] = -1
        slots[slot] = FoldedObject(key: [], hash: 0, seq: .none)
        slots[slot].state = .free
        freeSlots.append(slot)
    }

    private mutating func addToIndex(_ slot: Int) {
        let mask = index.count - 1
        var at = Int(truncatingIfNeeded: slots[slot].hash) & mask
        while index[at] >= 0 { at = (at + 1) & mask }
        index[at] = Int32(slot)
    }

    private mutating func grow() {
        index = [Int32](repeating: -1, count: index.count * 2)
        for slot in slots.indices where slots[slot].state != .free { addToIndex(slot) }
    }

    @inline(__always)
    private static func matches(_ key: [UInt8], _ model: Bytes, _ id: Bytes) -> Bool {
        key.withUnsafeBytes {
            guard $0.count == model.count + 1 + id.count, let start = $0.baseAddress else { return false }
            return $0[model.count] == 0 && Self.equal(start, model) && Self.equal(start + model.count + 1, id)
        }
    }

    @inline(__always)
    private static func equal(_ start: UnsafeRawPointer, _ bytes: Bytes) -> Bool {
        guard let other = bytes.baseAddress else { return true }
        return memcmp(start, other, bytes.count) == 0
    }

    /// A random number per process, so that an attacker cannot choose ids that collide.
    private static let seed = UInt64.random(in: .min ... .max) | 1

    @inline(__always)
    private static func hash(_ model: Bytes, _ id: Bytes) -> UInt64 {
        mix(mix(seed, model), id)
    }

    /// Hashes eight bytes at a time by folded multiplication, as wyhash does.
    @inline(__always)
    private static func mix(_ start: UInt64, _ bytes: Bytes) -> UInt64 {
        var hash = start ^ UInt64(truncatingIfNeeded: bytes.count)
        var at = 0
        while at < bytes.count {
            var word: UInt64 = 0
            if at + 8 <= bytes.count {
                word = bytes.loadUnaligned(fromByteOffset: at, as: UInt64.self)
            } else {
                for i in at..<bytes.count { word = word << 8 | UInt64(bytes[i]) }
            }
            let product = (hash ^ word).multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15 ^ seed)
            hash = (product.high ^ product.low) &+ word
            at += 8
        }
        return hash ^ hash >> 32
    }
}
