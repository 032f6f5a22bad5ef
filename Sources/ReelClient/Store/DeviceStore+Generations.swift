internal import ReelCore

// The upkeep of generations: a generation that was replaced is removed, and two layers become one, in small steps.
extension DeviceStore {
    /// The number of pairs that one step removes or moves, and the bytes of rows after which a step that moves ends.
    private static let (step, stepBytes) = (1_000, 1 << 20)

    /// Finds the generations that an earlier run has left, and that belong to no state and no load.
    func findUnused() throws(ReelError) {
        let snapshot = try storage.snapshot()
        var used: Set<Int64> = []
        for kind in "tl".utf8 {
            try snapshot.forEach(from: [kind], to: [kind + 1]) { (key, value) throws(ReelError) in
                guard let content = SealedValue.open(value, for: key) else { return true }
                var row = RowReader(content)
                if let state = try? StateRow(&row) { used.formUnion(state.layers) }
                return true
            }
        }
        var unused: Set<Int64> = []
        for kind in StoreKey.kindsOfGenerations {
            var start: [UInt8] = [kind]
            var generation: Int64?
            repeat {
                generation = nil
                try snapshot.forEach(from: start, to: [kind + 1]) { (key, _) throws(ReelError) in
                    generation = StoreKey.number(in: key, at: 1)
                    return false
                }
                guard let found = generation else { break }
                if !used.contains(found), found < firstNumber { unused.insert(found) }
                start = StoreKey.end(of: [kind] + withUnsafeBytes(of: found.bigEndian) { Array($0) })
            } while true
        }
        unusedGenerations += unused.subtracting(unusedGenerations).sorted()
    }

    /// Removes a part of the unused generations. Returns false if there is nothing left to remove.
    func removeUnused() throws(ReelError) -> Bool {
        guard let generation = unusedGenerations.last else { return false }
        let snapshot = try storage.snapshot()
        for kind in StoreKey.kindsOfGenerations {
            let start = [kind] + withUnsafeBytes(of: generation.bigEndian) { Array($0) }
            let end = StoreKey.end(of: start)
            var (last, count) = ([UInt8](), 0)
            try snapshot.forEach(from: start, to: end) { (key, _) throws(ReelError) in
                count += 1
                if count == Self.step { last = Array(key) }
                return count < Self.step
            }
            guard count > 0 else { continue }
            try commit(durably: false) { changes throws(ReelError) in
                changes.removeRange(from: start, to: count == Self.step ? last + [0] : end)
            }
            return true
        }
        unusedGenerations.removeLast()
        return !unusedGenerations.isEmpty
    }

    /// Gives a part of the file's unused pages back to the file system. Returns true if there are more to give back.
    func releaseSpace() -> Bool { (storage as? SQLiteStorage)?.releaseSpace() ?? false }

    /// Moves rows of the upper generation of a stored state to the lower one. Nothing that a reader sees changes.
    ///
    /// - Parameters:
    ///   - row: the stream's row.
    ///   - layers: the generations of the state, the upper one first.
    /// - Returns: The generations of the state after this step. There is one once all rows were moved.
    func merge(_ row: Int64, layers: [Int64]) throws(ReelError) -> [Int64] {
        guard let upper = layers.first, let lower = layers.last, layers.count > 1 else { return layers }
        let snapshot = try storage.snapshot()
        var moved: [(key: [UInt8], row: StoredRow?)] = []
        var isLast = true
        var bytes = 0
        let start = StoreKey.object(upper, [])
        try snapshot.forEach(from: start, to: StoreKey.end(of: start)) { (key, value) throws(ReelError) in
            guard let content = SealedValue.open(value, for: key) else { throw ReelError.damagedStore(key) }
            moved.append((Array(key[start.count...]), try StoredObject(content).row))
            bytes += content.count
            isLast = moved.count < Self.step && bytes < Self.stepBytes
            return isLast
        }
        try commit(durably: false) { changes throws(ReelError) in
            for (key, stored) in moved {
                let former = try StoredObject.find(key, [lower], snapshot)?.row?.agingSeq
                let lowered = UnwrittenRow(key: key, row: stored, formerAgingSeq: former)
                Self.write(lowered, to: lower, marksRemoval: false, &changes)
                let raised = UnwrittenRow(key: key, row: nil, formerAgingSeq: stored?.agingSeq)
                Self.write(raised, to: upper, marksRemoval: false, &changes)
            }
            guard isLast else { return }
            let state = try snapshot.sealed(StoreKey.state(row)) { (content) throws(ReelError) in
                try StateRow(content)
            }
            guard var state, state.layers == layers else { return }
            state.layers = [lower]
            changes.seal(state.content, for: StoreKey.state(row))
        }
        guard isLast else { return layers }
        unusedGenerations.append(upper)
        return [lower]
    }
}
