import ReelCore

/// What a subscription wants of a stream: events that touch objects of some models, and all of one site. What is left
/// out is proven like what is sent: the ranges of a filtered view say "these events of it, and no others".
struct EventFilter: Hashable, Sendable {
    /// More models are not named.
    static let modelsMax = 100

    /// The models as they stand in records, escapes and all.
    private let models: [[UInt8]]
    /// Its events come whatever their model.
    private(set) var site: Site?

    init(models: [String], site: Site?) {
        self.models = Set(models.map(Self.canonical)).sorted { $0.lexicographicallyPrecedes($1) }
        self.site = site
    }

    /// How many bytes its models have.
    var byteCount: Int { models.reduce(0) { $0 + $1.count } }

    private static func canonical(_ text: String) -> [UInt8] {
        var quoted: [UInt8] = []
        quoted.append(quoted: text)
        return Array(quoted.dropFirst().dropLast())
    }

    /// The same for events none of which is of the filter's own site: many clients then share what is made for one.
    var withoutSite: EventFilter {
        var filter = self
        filter.site = nil
        return filter
    }

    /// Whether an event, which has been parsed out of this value, is wanted.
    func wants(_ event: ParsedEvent, _ value: Bytes) -> Bool {
        if event.site == site { return true }
        return event.parts.contains { part in
            let start = Int(part.model.start)
            let model = Bytes(rebasing: value[start..<start + Int(part.model.count)])
            return models.contains { $0.withUnsafeBytes { $0.equals(model) } }
        }
    }

    /// The same for a value that is taken apart first, into tables that are used again.
    func wants(_ value: Bytes, _ event: inout ParsedEvent) -> Bool {
        do throws(ReelError) {
            try event.parse(value)
            return wants(event, value)
        } catch {
            return false
        }
    }
}

/// The events of one stream in a batch, each looked at once for all filters.
struct FilteredBatch {
    private let batch: TailBatch
    private let places: [Int]
    private var events: [Int: ParsedEvent] = [:]
    private var sites: Set<Site> = []

    /// `places`: the indexes of what the batch delivers in the stream.
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

    /// A filter that wants the same of this batch, and that more clients have.
    func reduced(_ filter: EventFilter) -> EventFilter {
        if let site = filter.site, sites.contains(site) { return filter }
        return filter.withoutSite
    }

    /// What is delivered through a filter: barriers, and events that are wanted.
    func places(for filter: EventFilter) -> [Int] {
        places.filter { place in
            guard case .event = batch.kinds[place] else { return true }
            guard let event = events[place] else { return false }
            return batch.withValue(batch[place]) { filter.wants(event, $0) }
        }
    }
}
