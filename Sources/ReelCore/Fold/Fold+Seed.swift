extension Fold {
    /// Folds a seed: one line of the state that a new epoch begins with. A later seed of the same site or object
    /// replaces the earlier one.
    ///
    /// - Parameters:
    ///   - seed: the seed, which belongs to the stream of the fold.
    ///   - value: the record's value that `seed` was parsed from.
    ///   - seq: the seq of the seed. It is above `self.seq`.
    public mutating func apply(_ seed: ParsedSeed, _ value: Bytes, seq: Seq) -> Outcome {
        switch seed.line {
        case .site(let site, let op, let by, let ended):
            set(site, by: by.map { value[$0] }, op: op, seq: seq, lost: LostTexts(), end: ended ? seq : .none)
        case .object(let model, let id):
            let fields = seed.fields.map { field in
                FoldedField(
                    name: Array(value[field.name]),
                    value: .plain(Array(value[field.value])),
                    writer: TextMark(seq: seq, site: field.site)
                )
            }
            set(model: value[model], id: value[id], seq: seq, fields: fields)
        case .retired: retired = seq
        case .deleted(let model, let id):
            bury(model: value[model], id: value[id], at: seq)
        }
        advance(to: seq)
        return .seed
    }
}
