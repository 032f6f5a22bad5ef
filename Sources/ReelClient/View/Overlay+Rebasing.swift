internal import ReelCore

extension Overlay {
    /// Returns the event with splices that count the present text, which is the folded state with the laid events.
    /// Returns nil if a splice would be stale, or if an earlier part of the batch changes the same text.
    /// - Parameters:
    ///   - base: the seq on which the event was made.
    ///   - known: the author knows of the lost texts up to this seq. Nil: the event still waits for a rejection. Lost
    ///     texts do not apply to it yet.
    func rebased(_ event: SyncEvent, base: Seq, over confirmed: Fold, known: Seq?) -> SyncEvent? {
        let value = event.encoded(base: base, author: EventID(site: site, op: 0))
        return value.withUnsafeBytes { value in
            var parsed = ParsedEvent()
            guard (try? parsed.parse(value)) != nil else { return nil }
            let scratch = scratch(for: parsed, value, over: confirmed)
            var (changes, changed) = (event.changes, Set<Withdrawals.Field>())
            for (place, part) in parsed.parts.enumerated() {
                let key = parsed.key(of: part, value)
                // A splice of an object that is gone is refused when it is handed over.
                guard scratch.holds(key) else { continue }
                for operation in parsed.operations[part.ops] where operation.isSplice {
                    let name = JSONText(value[operation.name]).string
                    let field = key + [0] + Array(value[operation.name])
                    guard !changed.contains(field), !changed.contains(key),
                        known.map({ isLost(part, operation, value, base: $0) }) != true,
                        case .splice(let splices)? = changes[place].operations[name],
                        let edits = scratch.rebased(operation, of: part, in: parsed, value, to: confirmed.seq)
                    else { return nil }
                    let new = edits.map {
                        TextSplice(
                            at: $0.offset,
                            removing: $0.removed,
                            inserting: $0.triple.map { splices[$0].text } ?? ""
                        )
                    }
                    changes[place].operations[name] = .splice(new)
                }
                if part.kind == .delete { changed.insert(key) }
                for name in parsed.texts(of: part) { changed.insert(key + [0] + Array(value[name])) }
            }
            return event.isBatch ? SyncEvent(batch: changes) : changes.first.map(SyncEvent.init)
        }
    }

    private func isLost(
        _ part: ParsedEvent.Part,
        _ operation: ParsedEvent.Operation,
        _ value: Bytes,
        base: Seq
    ) -> Bool {
        guard let lost = lost[site] else { return false }
        return lost.covers(model: value[part.model], id: value[part.id], name: value[operation.name], base: base)
    }
}
