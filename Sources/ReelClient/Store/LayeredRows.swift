internal import ReelCore

/// The rows of one or two generations whose keys have a common beginning, in the order of the keys. Reads them page by
/// page.
struct LayeredRows {
    private struct Layer {
        let generation: Int64
        /// The first key of the storage that was not read yet; nil: all were read.
        var start: [UInt8]?
        let end: [UInt8]
        var page: ArraySlice<(key: [UInt8], row: StoredRow?)> = []
    }

    /// The number of rows of a page, and the bytes after which a page ends.
    private static let (pageCount, pageBytes) = (256, 1 << 20)

    private let storage: any StorageSnapshot
    private var layers: [Layer]

    init(_ generations: [Int64], beginning: [UInt8], _ storage: any StorageSnapshot) {
        self.storage = storage
        layers = generations.map { generation in
            let start = StoreKey.object(generation, beginning)
            return Layer(generation: generation, start: start, end: StoreKey.end(of: start))
        }
    }

    /// Returns the next row; nil after the last one.
    mutating func next() throws(ReelError) -> (key: [UInt8], row: StoredRow)? {
        while true {
            for index in layers.indices where layers[index].page.isEmpty { try read(index) }
            let heads = layers.compactMap(\.page.first?.key)
            guard let key = heads.min(by: KeyOrder.precedes) else { return nil }
            var row: StoredRow??
            for index in layers.indices where layers[index].page.first?.key == key {
                let taken = layers[index].page.removeFirst().row
                if row == nil { row = .some(taken) }
            }
            if case .some(.some(let row)) = row { return (key, row) }
        }
    }

    private mutating func read(_ index: Int) throws(ReelError) {
        guard let start = layers[index].start else { return }
        let prefix = StoreKey.object(layers[index].generation, []).count
        var page: [(key: [UInt8], row: StoredRow?)] = []
        var (isLast, bytes) = (true, 0)
        try storage.forEach(from: start, to: layers[index].end) { (key, value) throws(ReelError) in
            guard let content = SealedValue.open(value, for: key) else { throw ReelError.damagedStore(key) }
            page.append((Array(key[prefix...]), try StoredObject(content).row))
            bytes += content.count
            isLast = page.count < Self.pageCount && bytes < Self.pageBytes
            return isLast
        }
        layers[index].start = isLast ? nil : StoreKey.object(layers[index].generation, page[page.count - 1].key) + [0]
        layers[index].page = page[...]
    }
}
