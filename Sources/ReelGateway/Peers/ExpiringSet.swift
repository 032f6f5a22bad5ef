/// Keys that are held until a time. An expired key is gone; it is forgotten when the next key comes.
struct ExpiringSet<Key: Hashable> {
    /// For each key the time in milliseconds until which it is held.
    private var untilMs: [Key: Int64] = [:]

    var isEmpty: Bool { untilMs.isEmpty }

    /// Holds a key until a time, in place of an earlier time.
    mutating func insert(_ key: Key, untilMs end: Int64, nowMs: Int64) {
        untilMs = untilMs.filter { nowMs < $0.value }
        untilMs[key] = end
    }

    mutating func remove(_ key: Key) { untilMs[key] = nil }

    func contains(_ key: Key, nowMs: Int64) -> Bool { untilMs[key].map { nowMs < $0 } ?? false }
}
