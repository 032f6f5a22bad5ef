@testable import ReelCheck

/// A rule of rejected texts or of retired sites that decided what a record did.
enum DecidedRule: String, CaseIterable {
    /// A splice is stale because of its field's mark alone.
    case lostTextRefuses
    /// A splice is stale because of its site's `r` alone.
    case siteMarkRefuses
    /// A splice of a field with a mark is applied, since its author has read up to the mark.
    case knownMarkPasses
    /// The lowest of several marks above the base is taken.
    case lowestMarkCounts
    /// The mark of a rejected event is one of its site's, and not its own seq.
    case victimLeavesMark
    /// An event without a splice is marked with its own seq, though `r` lies above its base.
    case plainWriteIsNews
    /// A mark is made for an object that is not there, or deleted.
    case absentObject, deletedObject
    /// A mark is made for a part that was not evaluated.
    case laterPart
    /// An applied plain write removes a mark.
    case plainWriteRemoves
    /// Marks of a site become its `r`.
    case marksBecomeSiteMark
    /// No mark is made, since it would lie at or below the horizon.
    case markBelowHorizon
    /// Marks are forgotten because the horizon has moved.
    case marksForgotten
    /// A barrier ends sites, or spares some of the stream.
    case sitesRetired, sitesSpared
    /// A barrier acts on a stream without events, or on another one than the compared.
    case otherStreamRetired
    /// An event of a retired site, and of an unknown one whose base is below the last retirement alone.
    case retiredSiteRefused, unknownSiteRefused
    /// A site begins after a retirement, and one that is known writes with a base below it.
    case newSiteAfterRetirement, knownSiteAfterRetirement
    /// A retired site is forgotten.
    case retiredSiteForgotten
    /// A seed says that sites were retired.
    case retiredSeed
}

extension DecidedRule {
    /// The rules that decided what a record at seq `n` did.
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
                // Its own event cannot have removed them if it has consumed none.
                if now.seq == site.seq, now.lost.count < site.lost.count { rules.insert(.marksForgotten) }
            } else if site.end > site.seq {
                rules.insert(.retiredSiteForgotten)
            }
        }
        return rules
    }
}
