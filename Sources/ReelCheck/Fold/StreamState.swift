/// The state of one stream, and the rules by which events change it.
struct StreamState: Sendable {
    var objects: [ObjectName: Object] = [:]
    /// The seq of the event that deleted the object first.
    var tombstones: [ObjectName: Int64] = [:]
    var sites: [Site: SiteState] = [:]
    /// The number of consumed events.
    var consumed = 0
    /// The seqs of every 4,096th consumed event, the last 16.
    var marks: [Int64] = []
    /// The seq of the last barrier that retired sites of the stream; −1 if there is none.
    var retired: Int64 = -1

    /// True if the stream has the maximum number of sites. Sites that have ended do not count.
    private var isFull: Bool {
        sites.count >= Limit.sites && sites.values.count { $0.end == -1 } >= Limit.sites
    }

    /// Every author that may still write with a history has seen all seqs up to this one; −1 if there is no such seq.
    var horizon: Int64 {
        marks.count == Limit.marks ? marks[0] : -1
    }
}

struct SiteState: Sendable {
    /// The author's name, which the first event of the site sets.
    let by: Text?
    /// The last op that was consumed.
    var op: Int64
    /// The seq of the last event that was consumed.
    var seq: Int64
    /// The site's splices of any text with a base below this seq are stale; −1 if there is no such limit.
    var r: Int64
    /// By field: splices of the site with a base below this seq are stale, because they may count on a rejected text.
    var lost: [FieldName: Int64] = [:]
    /// The seq of the event with which the site ended, or of the barrier that retired it; −1 for a site that has not
    /// ended.
    var end: Int64
}

struct Object: Sendable {
    var fields: [Text: Field] = [:]
    /// The seq of the last event that was applied to the object.
    var seq: Int64
}

struct Field: Sendable {
    enum Content: Sendable {
        case plain(JSON)
        /// A text; its last writer is a splice above the horizon.
        case shared(SharedText)
    }

    var content: Content
    /// The last event that named the field.
    var writer: Stamp
    /// The last writer that was not a splice; nil if the field began with a splice.
    var plainWriter: Stamp?

    init(_ value: JSON, by writer: Stamp) {
        content = .plain(value)
        self.writer = writer
        plainWriter = writer
    }

    init(_ text: SharedText, by writer: Stamp, plainWriter: Stamp?) {
        content = .shared(text)
        self.writer = writer
        self.plainWriter = plainWriter
    }

    /// The current value, with the effects of all events.
    var value: JSON {
        switch content {
        case .plain(let value): value
        case .shared(let text): .text(text.visible)
        }
    }

    /// The field as a text with its history; nil if the field is not a text.
    var sharedText: SharedText? {
        switch content {
        case .shared(let text): text
        case .plain(.text(let text)): SharedText(text, by: writer)
        case .plain: nil
        }
    }
}

/// The object or tombstone with a name, as it was before an event.
struct Before {
    let object: Object?
    let tombstone: Int64?
}

extension StreamState {
    /// Folds the event at seq `n`.
    mutating func fold(_ event: Event, at n: Int64) -> Judgement {
        // 1. An unknown site begins with its op 0.
        if sites[event.site] == nil {
            if event.op != 0 { return .gap }
            if event.base < horizon || event.base < retired { return .stale }
            if isFull, !event.site.isOneRequest { return .tooManySites }
        }
        var site = sites[event.site] ?? SiteState(by: event.by, op: -1, seq: -1, r: -1, end: -1)

        // 2. Each site has one author, and its ops come in order, without duplicates.
        if event.by != site.by { return .foreign }
        if event.op <= site.op { return .duplicate }
        if event.op > site.op + 1 || site.end != -1 { return .gap }

        // 3. The event is consumed: applied, or rejected without effect on the objects.
        var before: [ObjectName: Before] = [:]
        for part in event.parts {
            before[part.object] = Before(object: objects[part.object], tombstone: tombstones[part.object])
        }
        let code = apply(event, at: n, site: site, before: before)
        if code != nil {
            for (name, before) in before {
                objects[name] = before.object
                tombstones[name] = before.tombstone
            }
            lose(event, at: n, &site)
        } else {
            for name in event.plainFields { site.lost[name] = nil }
        }
        site.op = event.op
        site.seq = n
        if event.last { site.end = n }
        sites[event.site] = site
        consumed += 1
        if consumed % Limit.eventsPerMark == 0 { mark(n) }
        return code.map { .rejected($0) } ?? .applied
    }

    /// Ends, at seq `n`, the sites that have consumed no event above the seq `before`.
    mutating func retire(before: Int64, at n: Int64) {
        for (name, site) in sites where site.end == -1 && site.seq <= before { sites[name]?.end = n }
        retired = n
    }

    /// Notes the texts that later splices of the site may not count on, because this event was rejected.
    private mutating func lose(_ event: Event, at n: Int64, _ site: inout SiteState) {
        // A mark above the base rejects the splices of this event, independent of other reasons. An author that has
        // read up to that mark knows this. The resulting rejection is no new information, so the mark stays unchanged.
        let spliced = event.splicedFields
        let marks = spliced.isEmpty ? [] : [site.r] + spliced.compactMap { site.lost[$0] }
        let mark = marks.filter { $0 > event.base }.min() ?? n
        // A splice with a base below the horizon is stale even without a mark.
        if mark > horizon {
            for name in event.textFields { site.lost[name] = max(site.lost[name] ?? -1, mark) }
        }
        sites[event.site] = site
        let ofStream = sites.values.reduce(0) { $0 + $1.lost.count }
        if site.lost.count > Limit.lostOfSite || ofStream > Limit.lostOfStream {
            site.r = max(site.r, site.lost.values.max() ?? -1)
            site.lost = [:]
        }
    }

    /// Applies a seed of a new epoch.
    mutating func plant(_ seed: Seed, at n: Int64) {
        switch seed {
        case .site(let site, let by, let op, let ended):
            sites[site] = SiteState(by: by, op: op, seq: n, r: -1, end: ended ? n : -1)
        case .object(let name, let fields):
            var object = Object(seq: n)
            for field in fields { object.fields[field.name] = Field(field.value, by: Stamp(seq: n, site: field.site)) }
            objects[name] = object
            tombstones[name] = nil
        case .tombstone(let name):
            objects[name] = nil
            tombstones[name] = n
        case .retired:
            retired = n
        }
    }

    private mutating func mark(_ n: Int64) {
        marks = (marks + [n]).suffix(Limit.marks)
        forget()
    }

    /// Drops everything at or below the horizon that is kept only for its history.
    mutating func forget() {
        let horizon = horizon
        tombstones = tombstones.filter { $0.value > horizon }
        sites = sites.filter { $0.value.end == -1 || $0.value.end > horizon }
        for (name, site) in sites where !site.lost.isEmpty {
            sites[name]?.lost = site.lost.filter { $0.value > horizon }
        }
        for (name, object) in objects {
            for (fieldName, field) in object.fields {
                guard case .shared(var text) = field.content else { continue }
                if field.writer.seq <= horizon {
                    objects[name]?.fields[fieldName] = Field(field.value, by: field.writer)
                } else {
                    text.forget(upTo: horizon)
                    objects[name]?.fields[fieldName]?.content = .shared(text)
                }
            }
        }
    }
}
