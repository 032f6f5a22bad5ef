public import ReelCore
public import ReelNet

/// A request about the folded state of a stream, to a snapshot node or to a gateway that forwards it to one.
public struct StateRequest: Equatable, Sendable {
    /// The kinds of requests.
    public enum Kind: Equatable, Sendable {
        /// The whole state.
        case snapshot(epoch: Epoch?)
        /// The changes after a seq of this epoch.
        case delta(after: Seq, epoch: Epoch)
        /// The rest of a snapshot or delta that was cut: the changes after a seq of this epoch, and everything beyond
        /// the cut that the client does not hold.
        case rest(after: Seq, beyond: SnapshotCut, epoch: Epoch)
        /// One object.
        case object(model: String, id: String)
        /// The outcomes of events that were acknowledged in this epoch.
        case outcomes(of: [ServerFrame.Acked], epoch: Epoch)
        /// At most `limit` sites of the stream, by the seqs of their last events, beginning after the seq `after`.
        case sites(after: Seq, limit: Int, epoch: Epoch?)

        /// The epoch that the client expects; nil: any.
        public var epoch: Epoch? {
            switch self {
            case .snapshot(let epoch): epoch
            case .delta(_, let epoch), .rest(_, _, let epoch), .outcomes(_, let epoch): epoch
            case .sites(_, _, let epoch): epoch
            case .object: nil
            }
        }
    }

    /// The stream.
    public var stream: StreamName
    /// The kind of the request.
    public var kind: Kind
    /// The lowest seq as of which the answer may be; −1: any.
    public var seqMin = Seq.none
    /// The bytes before the lines of a snapshot or delta.
    public var preamble: [UInt8] = []

    /// The payer of the response; nil: the node makes the request itself.
    public var payer: Payer?

    /// A request. One about outcomes needs the seqs of all its acks to be folded.
    public init(_ kind: Kind, of stream: StreamName) {
        self.stream = stream
        self.kind = kind
        if case .outcomes(let acks, _) = kind { seqMin = acks.map(\.seq).max() ?? .none }
    }

    /// The routes of requests about state.
    public enum Route: Sendable {
        /// `…/snapshot`, `…/delta`, `…/objects/{model}/{id}` and `…/objects?model=&id=`, `…/outcomes`, `…/sites`.
        case snapshot, delta, object, outcomes, sites
    }

    /// Reads an HTTP request.
    ///
    /// - Parameters:
    ///   - route: The route that the request matched.
    ///   - match: The match, with the placeholders and query parameters.
    ///   - request: The request.
    /// - Throws: The problem for the client, such as `bad_request` for a missing parameter, and `bad_range` for one out
    ///   of range.
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
            guard let cut = try cut(match, after: after) else { return .delta(after: after, epoch: epoch) }
            return .rest(after: after, beyond: cut, epoch: epoch)
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

    /// Returns the cut that the request names; nil: it names none, and asks for a delta.
    private static func cut<Endpoint>(_ match: Router<Endpoint>.Match, after: Seq) throws(Problem) -> SnapshotCut? {
        let beyond = try match.integer("beyond", from: -1, to: after)
        switch (match.query["model"], match.query["id"]) {
        case (nil, nil) where beyond == nil: return nil
        case (let model?, let id?):
            guard let cut = SnapshotCut(model: model, id: id, beyond: beyond ?? .none) else {
                throw Problem(
                    .badRequest,
                    "found a model or an id that no object has, expected 1 to \(Limits.name) bytes without control"
                        + " characters"
                )
            }
            return cut
        default: throw Problem(.badRequest, "found only a part of model, id and beyond, expected model and id")
        }
    }

    /// The default and the maximum number of sites in a response.
    package static let (sitesDefault, sitesMax) = (1_000, 10_000)

    /// The maximum number of acks in a request about outcomes.
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
    /// Adds the routes of requests about state.
    public mutating func addStateRoutes(_ endpoint: (StateRequest.Route) -> Endpoint) {
        let deltaParameters: Set = ["after", "epoch", "min_seq", "model", "id", "beyond"]
        add("GET", "/v1/streams/{stream}/snapshot", query: ["epoch", "min_seq"], endpoint(.snapshot))
        add("GET", "/v1/streams/{stream}/delta", query: deltaParameters, endpoint(.delta))
        add("POST", "/v1/streams/{stream}/outcomes", endpoint(.outcomes))
        add("GET", "/v1/streams/{stream}/sites", query: ["after", "epoch", "limit", "min_seq"], endpoint(.sites))
        add("GET", "/v1/streams/{stream}/objects/{model}/{id}", endpoint(.object))
        add("GET", "/v1/streams/{stream}/objects", query: ["model", "id"], endpoint(.object))
    }
}

extension Router.Match {
    /// The stream in the path.
    public var stream: StreamName {
        get throws(Problem) {
            guard let stream = StreamName(path["stream"] ?? "") else {
                throw Problem(.badStream, "found '\(path["stream"] ?? "")', expected \(StreamName.rule)")
            }
            return stream
        }
    }

    /// The query parameter `epoch`; nil: it is missing.
    public var epoch: Epoch? {
        get throws(Problem) {
            guard let text = query["epoch"] else { return nil }
            guard let epoch = Epoch(text) else {
                throw Problem(.badRequest, "found the epoch '\(text)', expected 16 lower-case hex digits")
            }
            return epoch
        }
    }

    /// Returns a query parameter that is an integer; nil: it is missing.
    ///
    /// - Parameters:
    ///   - name: The name of the parameter.
    ///   - lowest: The lowest integer that is accepted.
    ///   - highest: The highest integer that is accepted.
    /// - Throws: `bad_range` if the parameter is not such an integer.
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

/// Answers requests about state in this process, without another node. From any loop.
public protocol StateSource: Sendable {
    /// Answers through the exchange, now or later. On the exchange's loop.
    func respond(to request: StateRequest, _ exchange: HTTPExchange)

    /// Finds the outcomes of acknowledged events of a stream. On the loop.
    ///
    /// - Parameters:
    ///   - acks: The acknowledgements of the events.
    ///   - stream: The stream of the events.
    ///   - epoch: The epoch of the log in which the events were acknowledged.
    ///   - withinMs: The maximum time in milliseconds to wait for events that are not folded yet.
    ///   - loop: The loop of the caller.
    ///   - then: Called later, on the loop, with the outcomes in the order of `acks`, or with the problem for the
    ///     client.
    func outcomes(
        of acks: [ServerFrame.Acked],
        in stream: StreamName,
        epoch: Epoch,
        withinMs: Int64,
        on loop: EventLoop,
        then: @escaping (Result<[AckOutcome], Problem>) -> Void
    )

    /// The streams that have at least half of the sites that a stream may have. From any thread.
    var crowdedStreams: [CrowdedStream] { get }

    /// The health of the folded state in each partition. From any thread.
    var health: RoleHealth { get }

    /// Returns the loss of the log in a partition, as the folded state shows; nil: none. Called for each publish. From
    /// any thread.
    func loss(of partition: Int) -> ReelError?

    /// Returns true if the request can be answered; false if another node may know more. From any thread.
    func canAnswer(_ request: StateRequest) -> Bool

    /// Answers with a page of the streams that the client may read. On the exchange's loop.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - access: The rights of the client.
    ///   - exchange: The exchange of the request. It is answered now or later.
    func respond(to request: StreamListRequest, for access: Access, _ exchange: HTTPExchange)

    /// Returns true if the streams of all partitions can be listed. From any thread.
    func canAnswer(_ request: StreamListRequest) -> Bool

    /// Answers with the digests of the streams that the client may read, through the exchange. On the exchange's loop.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - access: the rights of the client.
    ///   - exchange: the exchange of the request. It is answered now or later.
    func respond(to request: DigestsRequest, for access: Access, _ exchange: HTTPExchange)

    /// Returns true if the partitions of all streams of the request are folded. From any thread.
    func canAnswer(_ request: DigestsRequest) -> Bool
}

extension Access {
    /// Throws 403 unless the client may make the request.
    public func require(_ route: StateRequest.Route, of stream: StreamName) throws(Problem) {
        switch route {
        case .sites: try requireInspect(stream)
        case .snapshot, .delta, .object, .outcomes: try requireRead(stream)
        }
    }
}
