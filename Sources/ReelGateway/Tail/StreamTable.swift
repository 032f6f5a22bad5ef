import ReelCore

/// The streams of a batch, numbered in the order of their first records. The memory of the keys must stay valid while
/// the table is used.
struct StreamTable {
    private(set) var names: [StreamName] = []
    /// The number of each name.
    private(set) var indexes: [StreamName: Int] = [:]
    /// The key of the last record. The next record most often has the same stream.
    private var last: (key: Bytes, index: Int) = (Bytes(start: nil, count: 0), 0)

    /// Returns the number of the key's stream; nil if the key is not a stream name.
    mutating func index(ofKey key: Bytes) -> Int? {
        if !names.isEmpty, key.equals(last.key) { return last.index }
        guard let name = StreamName(bytes: key) else { return nil }
        let index = indexes[name] ?? names.count
        if index == names.count {
            indexes[name] = index
            names.append(name)
        }
        last = (key, index)
        return index
    }
}
