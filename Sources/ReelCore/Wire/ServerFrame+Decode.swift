extension ServerFrame {
    /// Reads a frame.
    /// - Throws: `bad_json` if the bytes are not valid JSON; `bad_frame` for an invalid frame, or a type that this
    ///   version does not know.
    public init(_ bytes: Bytes) throws(ReelError) {
        let object = try JSONObject(bytes, levels: ClientFrame.levels + 8, shape: .badFrame)
        ref = try object.ref()
        body = try ServerFrame.body(object)
    }

    private static func body(_ object: JSONObject) throws(ReelError) -> Body {
        switch try object.required("t", object.string("t")) {
        case "welcome": return .welcome(try welcome(object))
        case "subscribed":
            return .subscribed(
                Subscribed(
                    stream: try object.stream(),
                    epoch: try object.required("epoch", object.epoch()),
                    partition: try object.number("partition"),
                    first: try object.seq("first"),
                    head: try object.seq("head"),
                    after: try object.seq("after")
                )
            )
        case "events":
            let events = try object.array("events") { (reader) throws(ReelError) in
                try DeliveredEvent(try reader.raw())
            }
            return .events(
                Events(
                    stream: try object.stream(),
                    from: try object.required("from", object.integer("from")),
                    to: try object.seq("to"),
                    events: try object.required("events", events)
                )
            )
        case "upto":
            return .upto(partition: try object.number("partition"), seq: try object.seq("seq"))
        case "unsubscribed": return .unsubscribed(try object.stream())
        case "ack":
            let acks = try object.array("acks") { (reader) throws(ReelError) in
                try Acked(JSONObject(try reader.raw(), levels: 2, shape: .badFrame))
            }
            return .ack(
                Ack(
                    stream: try object.stream(),
                    epoch: try object.required("epoch", object.epoch()),
                    acks: try object.required("acks", acks)
                )
            )
        case "nack":
            var error = try object.error("retry")
            error.index = nil
            return .nack(
                Nack(
                    stream: try object.stream(),
                    site: try object.required("site", object.site()),
                    op: try object.required("op", object.integer("op")),
                    error: error
                )
            )
        case "lagged":
            return .lagged(try object.stream(), seq: try object.seq("seq"), head: try object.seq("head"))
        case "goaway":
            return .goaway(
                afterMs: try object.required("after_ms", object.integer("after_ms")),
                nodes: try object.required("nodes", object.nodes())
            )
        case "nodes": return .nodes(try object.required("nodes", object.nodes()))
        case "error":
            return .error(
                Failure(
                    try object.error("retry_ms"),
                    stream: object.raw("stream") == nil ? nil : try object.stream(),
                    epoch: try object.epoch(),
                    first: try object.integer("first", from: -1),
                    head: try object.integer("head", from: -1)
                )
            )
        case let other: throw object.mismatch("found a frame of the unknown type \(other.debugDescription)")
        }
    }

    private static func deployment(_ object: JSONObject) throws(ReelError) -> Deployment? {
        guard let text = try object.string("deployment") else { return nil }
        guard let deployment = Deployment(text) else {
            throw object.mismatch("found the deployment \(text.debugDescription), expected 16 lower-case hex digits")
        }
        return deployment
    }

    private static func welcome(_ object: JSONObject) throws(ReelError) -> Welcome {
        let limits = try object.required("limits", object.object("limits"))
        let partitions = try object.number("partitions")
        guard partitions > 0 else { throw object.mismatch("found 0 partitions, expected at least 1") }
        return Welcome(
            node: try object.required("node", object.string("node")),
            epoch: try object.required("epoch", object.epoch()),
            log: try object.string("log") ?? "ok",
            number: Int(try object.integer("number") ?? 0),
            deployment: try deployment(object),
            partitions: partitions,
            limits: Limits(
                frame: try limits.number("frame"),
                event: try limits.number("event"),
                batch: try limits.number("batch"),
                subscriptions: try limits.number("subscriptions"),
                subscribe: try limits.integer("subscribe").map { Int($0) },
                fetch: try limits.number("fetch")
            ),
            pingS: try object.number("ping_s"),
            tokenS: try object.integer("token_s").map { Int($0) },
            nodes: try object.nodes() ?? []
        )
    }
}

extension ServerFrame.Acked {
    /// Reads `{"site":…,"op":…,"seq":…}`.
    public init(_ object: JSONObject) throws(ReelError) {
        self.init(
            site: try object.required("site", object.site()),
            op: try object.required("op", object.integer("op")),
            seq: try object.required("seq", object.integer("seq"))
        )
    }
}

extension JSONObject {
    fileprivate func number(_ name: StaticString) throws(ReelError) -> Int {
        Int(try required(name, integer(name)))
    }

    /// Returns the URLs of nodes; nil if they are absent.
    fileprivate func nodes() throws(ReelError) -> [String]? {
        try array("nodes") { (reader) throws(ReelError) in try reader.string() }
    }

    /// Returns a required seq, which may be −1.
    fileprivate func seq(_ name: StaticString) throws(ReelError) -> Seq {
        try required(name, integer(name, from: -1))
    }

    /// Returns the error of `code`, `message` and their companions. A code that this version does not know becomes
    /// `internal`; the message then contains its name.
    fileprivate func error(_ retry: StaticString) throws(ReelError) -> ReelError {
        let code = try required("code", string("code"))
        let message = try string("message") ?? ""
        let known = ErrorCode(rawValue: code)
        return ReelError(
            known ?? .internal,
            known == nil ? "\(code): \(message)" : message,
            retryMs: try integer(retry),
            index: try integer("index").map { Int($0) }
        )
    }
}
