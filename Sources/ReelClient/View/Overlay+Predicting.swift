internal import ReelCore

/// What this device knows of an event before it is published.
enum Prediction: Equatable {
    /// The fold would reject the event with this code if it came next.
    case rejected(ErrorCode)
    /// The fold would apply the event, once the rejection of the queue's entries with these numbers is certain.
    case applied(after: [Int64])
}

extension Overlay {
    /// Returns what the fold would make of the event if it came next, after the events that lie here. Nothing is laid.
    ///
    /// The rejection of an event that lies here is only predicted, so the fold does not know of it. A splice whose
    /// author has read the text without that event has to wait for the rejection. A splice of an author who has read
    /// another one of the own texts than is shown now is stale.
    /// - Parameters:
    ///   - site: the site of the event.
    ///   - read: the count of withdrawals when the author read the text; nil: the author has read what is shown now.
    ///   - number: the number that the event's entry would get.
    func prediction(
        for event: Event,
        by site: Site,
        base: Seq,
        read: Int?,
        number: Int64,
        over confirmed: Fold?
    ) -> Prediction {
        let base = event.dependsOnBase ? base : Self.firstSeq - 1
        let value = event.encoded(base: base, author: Event.Author(site: site, op: 0))
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

    /// A draft that holds the objects of an event as they are shown.
    func scratch(for event: ParsedEvent, _ value: Bytes, over confirmed: Fold?) -> FoldDraft {
        var scratch = FoldDraft(of: draft.stream)
        scratch.takeHorizon(of: confirmed)
        for part in event.parts {
            let key = Array(value[part.model]) + [0] + Array(value[part.id])
            if covers(key) { scratch.reset(key, to: draft) } else { scratch.reset(key, to: confirmed) }
        }
        return scratch
    }

    /// The entries of the site that are predicted to be rejected and that name one of these fields as text.
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
            let key = Array(value[part.model]) + [0] + Array(value[part.id])
            for operation in event.operations[part.ops] where operation.isSplice {
                fields.insert(key + [0] + Array(value[operation.name]))
            }
        }
        return fields
    }

    /// True if the object or its tombstone is there, in the queue or in the fold below.
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
                let key = Array(value[part.model]) + [0] + Array(value[part.id])
                return event.texts(of: part).map { key + [0] + Array(value[$0]) }
            }
        }
    }
}
