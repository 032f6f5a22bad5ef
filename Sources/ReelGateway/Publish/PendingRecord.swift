import ReelCore

/// The key of a lane: the events of one site in one stream. The fate of an event affects the later events of its lane.
struct PublisherKey: Hashable {
    let stream: StreamName
    let site: Site
    /// The hash of both, computed once: a lane is looked up several times for each of its events.
    private let hash: Int

    init(stream: StreamName, site: Site) {
        self.stream = stream
        self.site = site
        var hasher = Hasher()
        hasher.combine(stream)
        hasher.combine(site)
        hash = hasher.finalize()
    }

    static func == (a: PublisherKey, b: PublisherKey) -> Bool {
        a.hash == b.hash && a.site == b.site && a.stream == b.stream
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(hash)
    }
}

/// An event on its way through the log.
final class PendingRecord {
    let lane: PublisherKey
    let op: Op
    let partition: Int
    /// The record's value.
    let value: [UInt8]
    /// The number of the connection or request that has published it.
    let connection: Int
    let takenMs: Int64
    /// The last seq that had been read when the record was handed to the log.
    var headWhenHandedOver: Seq = .none
    /// The seq at which the record was read back; nil: it has not been read. It is a guess if equal records were on
    /// their way; then the log's report decides.
    var seq: Seq?
    /// True once the log has reported that it has the record.
    var isReported = false
    /// When the log reported the record without a seq; nil: it has not.
    var placelessMs: Int64?
    /// True if the log has reported the record at a seq that was not read yet.
    var isPromised: Bool { isReported && placelessMs == nil && seq == nil }
    /// True if nothing more is expected of the record.
    var isOver = false

    init(_ lane: PublisherKey, _ op: Op, _ value: [UInt8], partition: Int, connection: Int, takenMs: Int64) {
        self.lane = lane
        self.op = op
        self.partition = partition
        self.value = value
        self.connection = connection
        self.takenMs = takenMs
    }

    /// The bytes for which the record counts while it is on its way.
    var cost: Int { Self.cost(of: value) }

    static func cost(of value: [UInt8]) -> Int { value.count + GatewaySettings.eventCostBytesMin }
}
