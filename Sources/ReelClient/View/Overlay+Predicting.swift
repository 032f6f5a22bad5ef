internal import ReelCore

extension Overlay {
    /// Returns the code with which the fold would reject the event if it came next, after the events that lie here; nil:
    /// the event would be applied. Nothing is laid.
    ///
    /// A rejection that is only predicted of an event that lies here does not count as a lost text: a splice after it
    /// waits until that rejection is certain, and `publish` takes it. `number`: the entry that the event would get.
    func refusal(of event: Event, by site: Site, base: Seq, number: Int64, over confirmed: Fold?) -> ErrorCode? {
        let base = event.dependsOnBase ? base : Self.firstSeq - 1
        let value = event.encoded(base: base, author: Event.Author(site: site, op: 0))
        return value.withUnsafeBytes { value in
            var parsed = ParsedEvent()
            guard (try? parsed.parse(value)) != nil else { return nil }
            var scratch = FoldDraft(of: draft.stream)
            scratch.takeHorizon(of: confirmed)
            for part in parsed.parts {
                let key = Array(value[part.model]) + [0] + Array(value[part.id])
                if covers(key) { scratch.reset(key, to: draft) } else { scratch.reset(key, to: confirmed) }
            }
            let lost = certainLost[site] ?? confirmed?.site(site)?.lost ?? LostTexts()
            return scratch.lay(parsed, value, seq: Self.firstSeq + number, lost: lost)
        }
    }

    /// True if the object or its tombstone is there, in the queue or in the fold below.
    func knows(_ key: Key, over confirmed: Fold?) -> Bool {
        covers(key) ? draft.knows(key) : confirmed?.knows(key) == true
    }
}
