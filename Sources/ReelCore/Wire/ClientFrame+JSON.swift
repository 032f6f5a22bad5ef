extension ClientFrame {
    /// Reads a frame. The error also carries `ref` and stream of the frame if they could be read.
    ///
    /// - Parameters:
    ///   - bytes: the JSON of the frame.
    ///   - eventsMax: the maximum number of events of a publish.
    /// - Throws: `bad_json` if the bytes are not valid JSON; `bad_frame`, `bad_stream` or `bad_range` for an invalid
    ///   frame; `limit` for a publish with too many events.
    public init(_ bytes: Bytes, eventsMax: Int = .max) throws(FrameError) {
        var ref: [UInt8]?
        var stream: StreamName?
        do throws(ReelError) {
            let object = try JSONObject(bytes, levels: ClientFrame.levels, shape: .badFrame)
            stream = try? object.stream()
            ref = try object.ref()
            body = try ClientFrame.body(object, eventsMax)
            self.ref = ref
        } catch {
            throw FrameError(error: error, ref: ref, stream: stream)
        }
    }

    private static func body(_ object: JSONObject, _ eventsMax: Int) throws(ReelError) -> Body {
        switch try object.required("t", object.string("t")) {
        case "hello":
            return .hello(
                Hello(
                    client: try object.required("client", object.string("client")),
                    token: try object.string("token"),
                    takesNodes: try object.flag("nodes")
                )
            )
        case "renew": return .renew(token: try object.required("token", object.string("token")))
        case "subscribe":
            guard let streams = try object.elements("streams") else { return .subscribe(try subscribe(object)) }
            return .subscribeAll(try subscribeAll(object, streams))
        case "unsubscribe": return .unsubscribe(try object.stream())
        case "fetch": return .fetch(try fetch(object))
        case "publish":
            let stream = try object.stream()
            let events = try object.events(atMost: eventsMax)
            let publish = Publish(
                stream: stream,
                epoch: try object.epoch(),
                events: try object.required("events", events)
            )
            guard !publish.events.isEmpty else { throw object.mismatch("found a publish without events") }
            return .publish(publish)
        case let other:
            throw object.mismatch(
                "found a frame of type \(other.debugDescription), "
                    + "expected hello, renew, subscribe, unsubscribe, fetch or publish"
            )
        }
    }

    /// Reads the entries of a `subscribe` of several streams. The frame is refused if one of them cannot be read.
    private static func subscribeAll(_ object: JSONObject, _ entries: [Bytes]) throws(ReelError) -> [Subscribe] {
        guard object.raw("stream") == nil else {
            throw object.mismatch("found the members \"stream\" and \"streams\", expected one of them")
        }
        guard !entries.isEmpty else { throw object.mismatch("found a subscribe without streams") }
        guard entries.count <= subscribeStreams else {
            throw ReelError(.limit, "found \(entries.count) streams, expected at most \(subscribeStreams)")
        }
        var streams: Set<StreamName> = []
        var subscribes: [Subscribe] = []
        for (index, entry) in entries.enumerated() {
            do throws(ReelError) {
                let subscribe = try subscribe(JSONObject(entry, levels: levels - 2, shape: .badFrame))
                guard streams.insert(subscribe.stream).inserted else {
                    throw object.mismatch("found the stream \(subscribe.stream) twice")
                }
                subscribes.append(subscribe)
            } catch {
                throw ReelError(error.code, "in \"streams\": \(error.message)", index: index)
            }
        }
        return subscribes
    }

    private static func subscribe(_ object: JSONObject) throws(ReelError) -> Subscribe {
        let stream = try object.stream()
        let position = try object.read("after") { (reader) throws(ReelError) -> Position in
            guard try reader.kind() == .string else { return .after(try reader.integer(from: -1)) }
            guard try reader.string() == "now" else { throw reader.mismatch("found a text that is not \"now\"") }
            return .now
        }
        let models = try object.array("models") { (reader) throws(ReelError) -> String in
            let model = try reader.string()
            guard (1...Limits.name).contains(model.utf8.count) else {
                throw reader.mismatch("found a model of \(model.utf8.count) bytes, expected 1 to \(Limits.name)")
            }
            return model
        }
        let subscribe = Subscribe(
            stream: stream,
            position: try object.required("after", position),
            epoch: try object.epoch(),
            models: models,
            site: try object.site(),
            last: try object.read("last", witness),
            hasOutcomes: try object.flag("outcome")
        )
        if case .after(0...) = subscribe.position, subscribe.epoch == nil {
            throw object.mismatch("found a position without its epoch")
        }
        return subscribe
    }

    /// Reads `[seq, "hash"]`.
    private static func witness(_ reader: inout JSONReader) throws(ReelError) -> Witness {
        var (seq, hash, count): (Seq, UInt64?, Int) = (0, nil, 0)
        try reader.array { (reader) throws(ReelError) in
            switch count {
            case 0: seq = try reader.integer()
            case 1: hash = Hex64.parse(try reader.text().raw)
            default: try reader.skip()
            }
            count += 1
        }
        guard count == 2, let hash else {
            throw reader.mismatch("found no seq and hash, expected [seq, 16 lower-case hex digits]")
        }
        return Witness(seq: seq, hash: hash)
    }

    private static func fetch(_ object: JSONObject) throws(ReelError) -> Fetch {
        let stream = try object.stream()
        let epoch = try object.required("epoch", object.epoch())
        let ranges = try object.array("ranges") { (reader) throws(ReelError) in try reader.seqRange() }
        let fetch = Fetch(
            stream: stream,
            epoch: epoch,
            ranges: try object.required("ranges", ranges),
            hasOutcomes: try object.flag("outcome")
        )
        guard (1...fetchRanges).contains(fetch.ranges.count) else {
            throw ReelError(.badRange, "found \(fetch.ranges.count) ranges, expected 1 to \(fetchRanges)")
        }
        let seqs = fetch.ranges.reduce(0) { $0 + $1.upperBound - $1.lowerBound + 1 }
        guard seqs <= fetchSeqs else {
            throw ReelError(.badRange, "found ranges of \(seqs) seqs, expected at most \(fetchSeqs) in all")
        }
        return fetch
    }

    /// Returns the bytes of the frame.
    public func encoded() -> [UInt8] {
        var writer = JSONObjectWriter()
        switch body {
        case .hello(let hello):
            writer.member("t", "hello")
            writer.member("client", hello.client)
            writer.member("token", hello.token)
            if hello.takesNodes { writer.member("nodes", true) }
        case .renew(let token):
            writer.member("t", "renew")
            writer.member("token", token)
        case .subscribe(let subscribe):
            writer.member("t", "subscribe")
            Self.write(subscribe, to: &writer)
        case .subscribeAll(let subscribes):
            writer.member("t", "subscribe")
            writer.objects("streams", subscribes) { Self.write($1, to: &$0) }
        case .unsubscribe(let stream):
            writer.member("t", "unsubscribe")
            writer.member("stream", stream.description)
        case .fetch(let fetch):
            writer.member("t", "fetch")
            writer.member("stream", fetch.stream.description)
            writer.member("epoch", fetch.epoch.description)
            writer.member("ranges", fetch.ranges) { $0.append(integers: $1.lowerBound, $1.upperBound) }
            if fetch.hasOutcomes { writer.member("outcome", true) }
        case .publish(let publish):
            writer.member("t", "publish")
            writer.member("stream", publish.stream.description)
            writer.member("epoch", publish.epoch?.description)
            writer.member("events", publish.events) { $0.append(contentsOf: $1) }
        }
        writer.member("ref", raw: ref)
        return writer.finish()
    }

    private static func write(_ subscribe: Subscribe, to writer: inout JSONObjectWriter) {
        writer.member("stream", subscribe.stream.description)
        switch subscribe.position {
        case .after(let seq): writer.member("after", seq)
        case .now: writer.member("after", "now")
        }
        writer.member("epoch", subscribe.epoch?.description)
        if let models = subscribe.models { writer.member("models", models) { $0.append(quoted: $1) } }
        writer.member("site", subscribe.site?.description)
        if let last = subscribe.last {
            writer.member("last") {
                $0.append(ASCII.openBracket)
                $0.append(integer: last.seq)
                $0.append(ASCII.comma)
                $0.append(quoted: Hex64.text(last.hash))
                $0.append(ASCII.closeBracket)
            }
        }
        if subscribe.hasOutcomes { writer.member("outcome", true) }
    }
}

extension JSONObject {
    /// Returns the JSON of each event of a publish, unchanged; nil if there is no such member.
    /// - Throws: `limit` if there are more than `maximum` events.
    public func events(atMost maximum: Int) throws(ReelError) -> [[UInt8]]? {
        guard let events = try elements("events") else { return nil }
        guard events.count <= maximum else {
            throw ReelError(.limit, "found \(events.count) events, expected at most \(maximum)")
        }
        return events.map { Array($0) }
    }

    /// Reads a boolean member; false if the member is absent.
    func flag(_ name: StaticString) throws(ReelError) -> Bool {
        try read(name) { (reader) throws(ReelError) in try reader.boolean() } ?? false
    }

    /// Returns the JSON of a frame's `ref`, unchanged; nil if it is absent.
    func ref() throws(ReelError) -> [UInt8]? {
        try read("ref") { (reader) throws(ReelError) in
            let kind = try reader.kind()
            guard kind == .string || kind == .number else { throw reader.mismatch("expected a string or a number") }
            let ref = try reader.raw()
            guard ref.count <= ClientFrame.refBytes else {
                throw reader.mismatch("found a ref of \(ref.count) bytes, expected at most \(ClientFrame.refBytes)")
            }
            return Array(ref)
        }
    }
}

extension JSONReader {
    /// Reads `[first, last]`. Throws `bad_range` for a range that ends before it begins.
    mutating func seqRange() throws(ReelError) -> ClosedRange<Seq> {
        var bounds: [Seq] = []
        try array { (reader) throws(ReelError) in
            if bounds.count < 3 { bounds.append(try reader.integer()) } else { try reader.skip() }
        }
        guard bounds.count == 2, bounds[0] <= bounds[1] else {
            throw ReelError(.badRange, "found no range, expected [first, last] with first at most last")
        }
        return bounds[0]...bounds[1]
    }
}
