internal import ReelCore

/// The predicted effect of an event that is about to be published.
enum Prediction: Equatable {
    /// The fold would reject the event with this code if it came next.
    case rejected(ErrorCode)
    /// The fold would apply the event, once the rejection of the queue's entries with these numbers is certain.
    case applied(after: [Int64])
}

extension Overlay {
    /// Returns the effect that the fold would give the event if it came next, after the laid events. Does not lay the
    /// event.
    ///
    /// A splice has to wait if its author read the text without a laid event whose rejection is only predicted. A
    /// splice is stale if its author read another version of the own texts than the one that is shown now.
    /// - Parameters:
    ///   - site: the site of the event.
    ///   - read: the count of withdrawals when the author read the text; nil: the author has read what is shown now.
    ///   - number: the number that the event's entry would get.
    func prediction(
        for event: SyncEvent,
        by site: Site,
        base: Seq,
        read: Int?,
        number: Int64,
        over confirmed: Fold?
    ) -> Prediction {
        let base = event.dependsOnBase ? base : Self.firstSeq - 1
        let value = event.encoded(base: base, author: EventID(site: site, op: 0))
        return value.withUnsafeBytes { value in
            var parsed = ParsedEvent()
            guard (try? parsed.parse(value)) != nil else { return .applied(after: []) }
            let scratch = scratch(for: parsed, value, over: confirmed)
            func refusal(with lost: LostTexts?) -> ErrorCode? {
                var scratch = scratch
                let lost = lost ?? confirmed?.site(site)?.lost ?? LostTexts()
                return scratch.lay(parsed, value, seq: Self.firstSeq + number, lost: lost)
            }
            let fields = Self.splicedFields(of: parsed, value)
            let isUnknowing = fields.contains { field in read.map { withdrawals.concern(field, since: $0) } ?? false }
            guard let code = refusal(with: lost[site]) else {
                return isUnknowing ? .rejected(.stale) : .applied(after: [])
            }
            guard code == .stale, refusal(with: certainLost[site]) == nil else { return .rejected(code) }
            let blockers = blockers(of: fields, by: site)
            return blockers.isEmpty || isUnknowing ? .rejected(.stale) : .applied(after: blockers)
        }
    }

    /// Returns a draft with the objects that an event names, as they are shown.
    func scratch(for event: ParsedEvent, _ value: Bytes, over confirmed: Fold?) -> FoldDraft {
        var scratch = FoldDraft(of: draft.stream)
        scratch.takeHorizon(of: confirmed)
        for part in event.parts {
            let key = event.key(of: part, value)
            if covers(key) { scratch.reset(key, to: draft) } else { scratch.reset(key, to: confirmed) }
        }
        return scratch
    }

    /// Returns the numbers of the site's entries that name one of these fields as text and whose rejection is
    /// predicted.
    private func blockers(of fields: Set<Withdrawals.Field>, by site: Site) -> [Int64] {
        // A site with too many lost texts has one mark for all its fields.
        let isAny = lost[site]?.all ?? .none > confirmedLost[site]?.all ?? .none
        let keys = Set(fields.map { Array($0[..<($0.lastIndex(of: 0) ?? 0)]) })
        let candidates = isAny ? Set(laid.keys) : Set(keys.flatMap { numbers[$0] ?? [] })
        return candidates.sorted().filter { number in
            guard let entry = laid[number], entry.refusal != nil, entry.site == site else { return false }
            return entry.texts.contains { isAny || fields.contains($0) }
        }
    }

    private static func splicedFields(of event: ParsedEvent, _ value: Bytes) -> Set<Withdrawals.Field> {
        var fields: Set<Withdrawals.Field> = []
        for part in event.parts {
            let key = event.key(of: part, value)
            for operation in event.operations[part.ops] where operation.isSplice {
                fields.insert(key + [0] + Array(value[operation.name]))
            }
        }
        return fields
    }

    /// Returns true if the object or its tombstone exists, in the queue or in the fold below.
    func knows(_ key: Key, over confirmed: Fold?) -> Bool {
        covers(key) ? draft.knows(key) : confirmed?.knows(key) == true
    }
}

extension Overlay.Laid {
    /// The fields that the event names as text.
    var texts: [Withdrawals.Field] {
        value.withUnsafeBytes { value in
            var event = ParsedEvent()
            guard (try? event.parse(value)) != nil else { return [] }
            return event.parts.flatMap { part in
                let key = event.key(of: part, value)
                return event.texts(of: part).map { key + [0] + Array(value[$0]) }
            }
        }
    }
}
