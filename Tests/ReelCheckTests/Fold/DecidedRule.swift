@testable import ReelCheck

/// A rule about rejected texts or retired sites that determined the outcome of a record.
enum DecidedRule: String, CaseIterable {
    /// A splice is stale only because of the mark of its field.
    case lostTextRefuses
    /// A splice is stale only because of `r`, the mark for all fields of its site.
    case siteMarkRefuses
    /// A splice of a field with a mark is applied, because its base is at or above the mark.
    case knownMarkPasses
    /// Several marks are above the base, and the lowest one counts.
    case lowestMarkCounts
    /// A rejected event gets a mark of its site, and not its own seq.
    case victimLeavesMark
    /// A rejected event without a splice gets its own seq as mark, although `r` is above its base.
    case plainWriteIsNews
    /// A mark is made for an object that does not exist, or that is deleted.
    case absentObject, deletedObject
    /// A mark is made for a part of a batch that was not evaluated.
    case laterPart
    /// An applied plain write removes a mark.
    case plainWriteRemoves
    /// The marks of a site are replaced by its `r`.
    case marksBecomeSiteMark
    /// No mark is made, because it would be at or below the horizon.
    case markBelowHorizon
    /// Marks are removed because the horizon has moved.
    case marksForgotten
    /// A retirement ends sites of the stream, or leaves some of them alive.
    case sitesRetired, sitesSpared
    /// A retirement names a stream without events, or another stream than the one that is compared.
    case otherStreamRetired
    /// An event is refused because its site is retired, or only because its base is below the last retirement, and its
    /// site is unknown.
    case retiredSiteRefused, unknownSiteRefused
    /// A site begins after a retirement, or a known site writes with a base below the retirement.
    case newSiteAfterRetirement, knownSiteAfterRetirement
    /// A retired site is removed.
    case retiredSiteForgotten
    /// A seed states that sites of the stream were retired.
    case retiredSeed
}

extension DecidedRule {
    /// Returns the rules that determined the outcome of a record at seq `n`.
    static func all(
        of record: Record,
        at n: Int64,
        in stream: Text,
        _ judgement: Judgement?,
        from before: StreamState,
        to after: StreamState
    ) -> Set<DecidedRule> {
        var rules: Set<DecidedRule> = []
        switch (record, judgement) {
        case (.event(let event), .some(let judgement)):
            rules = sites(event, at: n, judgement, before)
            switch judgement {
            case .applied: rules.formUnion(applied(event, before))
            case .rejected(let code): rules.formUnion(rejected(event, at: n, code, before, after))
            default: break
            }
        case (.barrier(.retire(_, let name)), .barrier):
            if name != stream { rules.insert(.otherStreamRetired) }
            let ended = after.sites.keys.filter { before.sites[$0]?.end == -1 && after.sites[$0]?.end == n }
            if !ended.isEmpty { rules.insert(.sitesRetired) }
            if name == stream, after.sites.values.contains(where: { $0.end == -1 }) { rules.insert(.sitesSpared) }
        case (.seed(.retired), .seed): rules.insert(.retiredSeed)
        default: break
        }
        if before.horizon != after.horizon { rules.formUnion(forgotten(before, after)) }
        return rules
    }

    private static func sites(
        _ event: Event,
        at n: Int64,
        _ judgement: Judgement,
        _ before: StreamState
    ) -> Set<DecidedRule> {
        guard let site = before.sites[event.site] else {
            if judgement == .stale, event.base >= before.horizon { return [.unknownSiteRefused] }
            return judgement == .applied && before.retired >= 0 ? [.newSiteAfterRetirement] : []
        }
        if judgement == .gap, site.end > site.seq, event.op == site.op + 1 { return [.retiredSiteRefused] }
        return judgement == .applied && event.base < before.retired ? [.knownSiteAfterRetirement] : []
    }

    private static func applied(_ event: Event, _ before: StreamState) -> Set<DecidedRule> {
        let lost = before.sites[event.site]?.lost ?? [:]
        var rules: Set<DecidedRule> = []
        if event.splicedFields.contains(where: { lost[$0] != nil }) { rules.insert(.knownMarkPasses) }
        if event.plainFields.contains(where: { lost[$0] != nil }) { rules.insert(.plainWriteRemoves) }
        return rules
    }

    private static func rejected(
        _ event: Event,
        at n: Int64,
        _ code: Code,
        _ before: StreamState,
        _ after: StreamState
    ) -> Set<DecidedRule> {
        guard let site = after.sites[event.site], !event.textFields.isEmpty else { return [] }
        let (r, lost) = (before.sites[event.site]?.r ?? -1, before.sites[event.site]?.lost ?? [:])
        let author = Author(site: event.site, base: event.base)
        let spliced = event.splicedFields
        let doomed = spliced.compactMap { lost[$0] }.filter { $0 > event.base }
        var rules: Set<DecidedRule> = []
        let seesPlainWrites = spliced.allSatisfy { name in
            before.objects[name.object]?.fields[name.field]?.plainWriter.map(author.sees) ?? true
        }
        if code == .stale, event.base >= before.horizon, seesPlainWrites {
            if doomed.isEmpty, r > event.base { rules.insert(.siteMarkRefuses) }
            if !doomed.isEmpty, r <= event.base { rules.insert(.lostTextRefuses) }
        }
        let marks = (spliced.isEmpty || r <= event.base ? [] : [r]) + doomed
        if Set(marks).count > 1 { rules.insert(.lowestMarkCounts) }
        if !marks.isEmpty { rules.insert(.victimLeavesMark) }
        if let mark = marks.min(), mark <= before.horizon { rules.insert(.markBelowHorizon) }
        if spliced.isEmpty, r > event.base { rules.insert(.plainWriteIsNews) }
        if site.r > r { rules.insert(.marksBecomeSiteMark) }
        let made = event.textFields.filter { site.lost[$0] != nil && site.lost[$0] != lost[$0] }
        if made.contains(where: { before.tombstones[$0.object] != nil }) { rules.insert(.deletedObject) }
        if made.contains(where: { before.objects[$0.object] == nil && before.tombstones[$0.object] == nil }) {
            rules.insert(.absentObject)
        }
        if made.contains(where: { $0.object != event.parts[0].object }) { rules.insert(.laterPart) }
        return rules
    }

    private static func forgotten(_ before: StreamState, _ after: StreamState) -> Set<DecidedRule> {
        var rules: Set<DecidedRule> = []
        for (name, site) in before.sites {
            if let now = after.sites[name] {
                // An event of the site can remove marks too, so the site must have consumed no event.
                if now.seq == site.seq, now.lost.count < site.lost.count { rules.insert(.marksForgotten) }
            } else if site.end > site.seq {
                rules.insert(.retiredSiteForgotten)
            }
        }
        return rules
    }
}
