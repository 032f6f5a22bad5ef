import Glibc

/// The objects and tombstones of a stream by model and id: an open-addressing table over slots. A slot keeps its number
/// as long as its object lives.
struct ObjectTable: Sendable {
    /// Every slot; those that hold nothing are `free`.
    private(set) var slots: [FoldedObject] = []
    private var freeSlots: [Int] = []
    /// Slot numbers by hash, −1 where there is none; a power of two, at most half full.
    private var index = [Int32](repeating: -1, count: 16)

    /// How many objects and tombstones there are.
    var count: Int { slots.count - freeSlots.count }

    subscript(slot: Int) -> FoldedObject {
        _read { yield slots[slot] }
        _modify { yield &slots[slot] }
    }

    /// The slot of an object or tombstone.
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

    /// Makes a living object without fields; it must not be there yet.
    mutating func insert(model: Bytes, id: Bytes, seq: Seq) -> Int {
        var key = [UInt8]()
        key.reserveCapacity(model.count + 1 + id.count)
        key.append(contentsOf: model)
        key.append(0)
        key.append(contentsOf: id)
        if (count + 1) * 2 > index.count { grow() }
        let object = FoldedObject(key: key, hash: Self.hash(model, id), seq: seq)
        let slot: Int
        if let free = freeSlots.popLast() {
            slot = free
            slots[free] = object
        } else {
            slot = slots.count
            slots.append(object)
        }
        place(slot)
        return slot
    }

    /// Takes an object or tombstone out of the table.
    mutating func remove(_ slot: Int) {
        let mask = index.count - 1
        var hole = Int(truncatingIfNeeded: slots[slot].hash) & mask
        while index[hole] != Int32(slot) { hole = (hole + 1) & mask }
        // What was pushed behind the hole by probing moves up into it.
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

    private mutating func place(_ slot: Int) {
        let mask = index.count - 1
        var at = Int(truncatingIfNeeded: slots[slot].hash) & mask
        while index[at] >= 0 { at = (at + 1) & mask }
        index[at] = Int32(slot)
    }

    private mutating func grow() {
        index = [Int32](repeating: -1, count: index.count * 2)
        for slot in slots.indices where slots[slot].state != .free { place(slot) }
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

    /// Another one in each process, so that nobody can choose ids that collide.
    private static let seed = UInt64.random(in: .min ... .max) | 1

    @inline(__always)
    private static func hash(_ model: Bytes, _ id: Bytes) -> UInt64 {
        mix(mix(seed, model), id)
    }

    /// Folded multiplication of eight bytes at a time, after wyhash.
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
