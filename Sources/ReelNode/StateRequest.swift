public import ReelCore
public import ReelNet

/// A question about the folded state of a stream: asked of a snapshot node, or of a gateway that passes it on to one.
public struct StateRequest: Equatable, Sendable {
    /// What is asked for.
    public enum Kind: Equatable, Sendable {
        /// All of it.
        case snapshot(epoch: Epoch?)
        /// What was touched after a seq of this epoch.
        case delta(after: Seq, epoch: Epoch)
        /// One object.
        case object(model: String, id: String)
        /// What became of events that were acked in this epoch.
        case outcomes(of: [ServerFrame.Acked], epoch: Epoch)
        /// At most `limit` of its sites, by the seqs of their last events, from the one behind `after` on.
        case sites(after: Seq, limit: Int, epoch: Epoch?)

        /// The epoch that is asked about; nil: whichever it is.
        public var epoch: Epoch? {
            switch self {
            case .snapshot(let epoch): epoch
            case .delta(_, let epoch), .outcomes(_, let epoch): epoch
            case .sites(_, _, let epoch): epoch
            case .object: nil
            }
        }
    }

    /// The stream.
    public var stream: StreamName
    /// What is asked for.
    public var kind: Kind
    /// The answer is to be true of this seq or a later one; −1: of any.
    public var seqMin = Seq.none
    /// What stands before the lines of a snapshot or delta.
    public var preamble: [UInt8] = []

    /// The payer of the answer; nil: the node itself asks.
    public var payer: Payer?

    /// A question; one about outcomes is to be true of all that it asks about.
    public init(_ kind: Kind, of stream: StreamName) {
        self.stream = stream
        self.kind = kind
        if case .outcomes(let acks, _) = kind { seqMin = acks.map(\.seq).max() ?? .none }
    }

    /// Which of the routes was taken.
    public enum Route: Sendable {
        /// `…/snapshot`, `…/delta`, `…/objects/{model}/{id}` and `…/objects?model=&id=`, `…/outcomes`, `…/sites`.
        case snapshot, delta, object, outcomes, sites
    }

    /// Reads the request that took this route. Throws what the client is told.
    public init<Endpoint>(_ route: Route, _ match: Router<Endpoint>.Match, _ request: HTTPRequest) throws(Problem) {
        self.init(try Self.kind(route, match, request), of: try match.stream)
        guard let seq = try match.integer("min_seq", from: 0) else { return }
        guard try match.epoch != nil else { throw Problem(.badRequest, "found min_seq without epoch") }
        seqMin = seq
    }

    private static func kind<Endpoint>(
        _ route: Route,
        _ match: Router<Endpoint>.Match,
        _ request: HTTPRequest
    ) throws(Problem) -> Kind {
        switch route {
        case .snapshot: return .snapshot(epoch: try match.epoch)
        case .delta:
            guard let after = try match.integer("after", from: 0), let epoch = try match.epoch else {
                throw Problem(.badRequest, "found no after or no epoch, expected both")
            }
            return .delta(after: after, epoch: epoch)
        case .object:
            guard let model = match.path["model"] ?? match.query["model"],
                let id = match.path["id"] ?? match.query["id"]
            else { throw Problem(.badRequest, "found no model or no id, expected both") }
            return .object(model: model, id: id)
        case .outcomes: return try outcomes(request)
        case .sites:
            let (after, epoch) = (try match.integer("after", from: -1) ?? .none, try match.epoch)
            guard after == .none || epoch != nil else { throw Problem(.badRequest, "found after without epoch") }
            let limit = try match.integer("limit", from: 1, to: Int64(sitesMax)) ?? Int64(sitesDefault)
            return .sites(after: after, limit: Int(limit), epoch: epoch)
        }
    }

    /// The sites of an answer.
    package static let (sitesDefault, sitesMax) = (1_000, 10_000)

    /// At most so many events are asked for at once.
    private static let acksMax = 10_000

    private static func outcomes(_ request: HTTPRequest) throws(Problem) -> Kind {
        let (acks, epoch) = try request.json { (object) throws(ReelError) in
            let acks = try object.array("acks") { (reader) throws(ReelError) in
                try ServerFrame.Acked(JSONObject(try reader.raw(), levels: 2, shape: .badRequest))
            }
            return (try object.required("acks", acks), try object.required("epoch", object.epoch()))
        }
        guard (1...acksMax).contains(acks.count) else {
            var problem = Problem(.limit, "found \(acks.count) acks, expected 1 to \(acksMax)")
            problem.limit = acksMax
            throw problem
        }
        return .outcomes(of: acks, epoch: epoch)
    }
}

extension Router {
    /// Adds the routes of questions about state.
    public mutating func addStateRoutes(_ endpoint: (StateRequest.Route) -> Endpoint) {
        add("GET", "/v1/streams/{stream}/snapshot", query: ["epoch", "min_seq"], endpoint(.snapshot))
        add("GET", "/v1/streams/{stream}/delta", query: ["after", "epoch", "min_seq"], endpoint(.delta))
        add("POST", "/v1/streams/{stream}/outcomes", endpoint(.outcomes))
        add("GET", "/v1/streams/{stream}/sites", query: ["after", "epoch", "limit", "min_seq"], endpoint(.sites))
        add("GET", "/v1/streams/{stream}/objects/{model}/{id}", endpoint(.object))
        add("GET", "/v1/streams/{stream}/objects", query: ["model", "id"], endpoint(.object))
    }
}

extension Router.Match {
    /// The stream that the path names.
    public var stream: StreamName {
        get throws(Problem) {
            guard let stream = StreamName(path["stream"] ?? "") else {
                throw Problem(.badStream, "found '\(path["stream"] ?? "")', expected \(StreamName.rule)")
            }
            return stream
        }
    }

    /// The query parameter `epoch`, nil if it was not given.
    public var epoch: Epoch? {
        get throws(Problem) {
            guard let text = query["epoch"] else { return nil }
            guard let epoch = Epoch(text) else {
                throw Problem(.badRequest, "found the epoch '\(text)', expected 16 lower-case hex digits")
            }
            return epoch
        }
    }

    /// A query parameter that is an integer, nil if it was not given.
    public func integer(_ name: String, from lowest: Int64, to highest: Int64 = largestInteger) throws(Problem)
        -> Int64?
    {
        guard let text = query[name] else { return nil }
        guard let value = Int64(text), (lowest...highest).contains(value), String(value) == text else {
            throw Problem(.badRange, "found \(name)=\(text), expected an integer from \(lowest) to \(highest)")
        }
        return value
    }
}

/// Answers questions about state in this process, on any loop, without asking another node.
public protocol StateSource: Sendable {
    /// Answers now or later, through the exchange. On the exchange's loop.
    func respond(to request: StateRequest, _ exchange: HTTPExchange)

    /// Calls back, on the loop, with what became of events of a stream that were acked in the epoch, in the order of
    /// the acks. What is not folded yet is waited for, at most so long.
    func outcomes(
        of acks: [ServerFrame.Acked],
        in stream: StreamName,
        epoch: Epoch,
        withinMs: Int64,
        on loop: EventLoop,
        then: @escaping (Result<[AckOutcome], Problem>) -> Void
    )

    /// The streams that have half or more of the sites that a stream may have. On any thread.
    var crowdedStreams: [CrowdedStream] { get }

    /// How the folded state stands in each partition. On any thread.
    var health: RoleHealth { get }

    /// What the log has lost of a partition, as the folded state shows it; nil: nothing. On any thread, for each
    /// publish.
    func loss(of partition: Int) -> ReelError?

    /// True if a question can be answered; false if another node may know more. On any thread.
    func canAnswer(_ request: StateRequest) -> Bool

    /// Answers with a page of the streams that the client may read, through the exchange. On the exchange's loop.
    func respond(to request: StreamListRequest, for access: Access, _ exchange: HTTPExchange)

    /// True if the streams of all partitions can be listed. On any thread.
    func canAnswer(_ request: StreamListRequest) -> Bool
}

extension Access {
    /// Throws 403 unless the question may be asked.
    public func require(_ route: StateRequest.Route, of stream: StreamName) throws(Problem) {
        switch route {
        case .sites: try requireInspect(stream)
        case .snapshot, .delta, .object, .outcomes: try requireRead(stream)
        }
    }
}
