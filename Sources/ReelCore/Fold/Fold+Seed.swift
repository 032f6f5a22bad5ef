extension Fold {
    /// Folds a line of the state that a new epoch begins with; `value` is the record's value that the seed was taken
    /// apart from. A later seed of the same site or object takes the place of the earlier.
    public mutating func apply(_ seed: ParsedSeed, _ value: Bytes, seq: Seq) -> Outcome {
        switch seed.line {
        case .site(let site, let op, let by, let ended):
            let by = by.map { value[$0] }
            let place = sites.index(forKey: site) ?? begin(site, by: by)
            touch(site: site, at: place)
            sites.values[place].by = by.map { Array($0) }
            sites.values[place].op = op
            sites.values[place].seq = seq
            sites.values[place].end = ended ? seq : .none
            if ended { agingSites.push(site, at: seq) }
        case .object(let model, let id):
            let slot = seeded(model: value[model], id: value[id], seq: seq)
            for field in seed.fields {
                objects[slot].write(value[field.name], value[field.value], by: TextMark(seq: seq, site: field.site))
            }
        case .deleted(let model, let id):
            let slot = seeded(model: value[model], id: value[id], seq: seq)
            objects[slot].bury(at: seq)
            agingObjects.push(slot, at: seq)
        }
        advance(to: seq)
        return .seed
    }

    /// The slot of a living object without fields.
    mutating func seeded(model: Bytes, id: Bytes, seq: Seq) -> Int {
        guard let slot = objects.find(model: model, id: id) else { return makeObject(model: model, id: id, seq: seq) }
        touch(object: slot)
        objects[slot].clear(at: seq)
        return slot
    }
}
