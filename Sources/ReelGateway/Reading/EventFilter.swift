import ReelBase
import ReelCore

/// A filter of a subscription: it passes events that touch objects of some models, and all events of one site. Events
/// that are left out are proven like events that are sent: a filtered range says "these matching events, and no
/// others".
struct EventFilter: Hashable, Sendable {
    /// The maximum number of models.
    static let modelsMax = 100

    /// The models as they are written in records, with escapes, sorted by their bytes.
    private let models: [[UInt8]]
    /// The site with events that pass whatever their model is; nil: there is none.
    private(set) var site: Site?

    init(models: [String], site: Site?) {
        self.models = Set(models.map(Self.canonical)).sorted { $0.lexicographicallyPrecedes($1) }
        self.site = site
    }

    /// The number of bytes of its models.
    var byteCount: Int { models.reduce(0) { $0 + $1.count } }

    private static func canonical(_ text: String) -> [UInt8] {
        var quoted: [UInt8] = []
        quoted.append(quoted: text)
        return Array(quoted.dropFirst().dropLast())
    }

    /// The same filter without its site, for batches without events of that site. Many clients then share the frames
    /// that are made for one of them.
    var withoutSite: EventFilter {
        var filter = self
        filter.site = nil
        return filter
    }

    /// Returns true if an event, which was parsed from `value`, passes.
    func wants(_ event: ParsedEvent, _ value: Bytes) -> Bool {
        if event.site == site { return true }
        return event.parts.contains { part in
            let start = Int(part.model.start)
            let model = Bytes(rebasing: value[start..<start + Int(part.model.count)])
            let index = models.partitioningIndex { $0.lexicographicallyPrecedes(model) }
            return index < models.count && models[index].withUnsafeBytes { $0.equals(model) }
        }
    }

    /// Parses `value` and returns true if the event passes. The tables of `event` are used again.
    func wants(_ value: Bytes, _ event: inout ParsedEvent) -> Bool {
        do throws(ReelError) {
            try event.parse(value)
            return wants(event, value)
        } catch {
            return false
        }
    }
}

/// The events of one stream in a batch, each parsed once for all filters.
struct FilteredBatch {
    private let batch: TailBatch
    private let places: [Int]
    private var events: [Int: ParsedEvent] = [:]
    private var sites: Set<Site> = []

    /// Parses the events among `places`, the indexes of the records that the batch delivers in the stream.
    init(_ batch: TailBatch, places: [Int]) {
        self.batch = batch
        self.places = places
        for place in places {
            guard case .event(_, let site, _) = batch.kinds[place] else { continue }
            sites.insert(site)
            var event = ParsedEvent()
            let isParsed = batch.withValue(batch[place]) { (try? event.parse($0)) != nil }
            if isParsed { events[place] = event }
        }
    }

    /// Returns a filter that passes the same events of this batch, and that more clients share.
    func reduced(_ filter: EventFilter) -> EventFilter {
        if let site = filter.site, sites.contains(site) { return filter }
        return filter.withoutSite
    }

    /// Returns the indexes of the records that pass a filter: barriers, and events that it wants.
    func places(for filter: EventFilter) -> [Int] {
        places.filter { place in
            guard case .event = batch.kinds[place] else { return true }
            guard let event = events[place] else { return false }
            return batch.withValue(batch[place]) { filter.wants(event, $0) }
        }
    }
}
