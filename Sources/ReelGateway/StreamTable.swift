import ReelCore

/// The streams of a batch, numbered as they come. The keys must stay where they are meanwhile.
struct StreamTable {
    private(set) var names: [StreamName] = []
    /// The number of each name.
    private(set) var indexes: [StreamName: Int] = [:]
    /// Most often the next record is of the same stream.
    private var last: (key: Bytes, index: Int) = (Bytes(start: nil, count: 0), 0)

    /// Nil for a key that is no stream's name.
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
