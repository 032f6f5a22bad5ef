package import ReelCore
public import ReelNet

/// A request for a page of the existing streams, in name order.
public struct StreamListRequest: Equatable, Sendable {
    /// The prefix of the names; empty: all names.
    public var prefix = ""
    /// The text after which the page begins; empty: the first name.
    public var after = ""
    /// The maximum number of streams in the page.
    public var limit = limitDefault

    /// The streams that the client may read by its token, as a gateway with keys reports; nil: no gateway reports it.
    /// It has an effect on a node without keys, which cannot check the token itself.
    public var readable: [StreamPattern]?

    /// The default and the maximum number of streams in a page.
    package static let (limitDefault, limitMax) = (100, 1_000)

    /// A request for the first page of all streams.
    public init() {}

    /// Reads the parameters of an HTTP request. Throws the problem for the client.
    public init<Endpoint>(_ match: Router<Endpoint>.Match, _ head: HTTPRequestHead) throws(Problem) {
        if let text = match.query["prefix"] {
            guard Self.isPrefix(text) else {
                throw Problem(
                    .badRequest,
                    "found the prefix '\(text)', expected what a name begins with: \(StreamName.rule)"
                )
            }
            prefix = text
        }
        if let text = match.query["after"] {
            guard text.isEmpty || StreamName(text) != nil else {
                throw Problem(.badRequest, "found after='\(text)', expected `next` of the page before")
            }
            after = text
        }
        if let limit = try match.integer("limit", from: 1, to: Int64(Self.limitMax)) { self.limit = Int(limit) }
        readable = try StreamPattern.readable(head)
    }

    /// Returns the ranges of names that the request is for and that the client may read, in name order. Throws 403 if
    /// the client may read no stream at all.
    package func ranges(for access: Access) throws(Problem) -> [NameRange] {
        guard let patterns = try access.readable(readable) else { return [NameRange(prefix: prefix)] }
        return NameRange.disjoint(patterns.compactMap { $0.range?.intersection(withPrefix: prefix) })
    }

    /// Returns true if names of streams can begin with this text.
    package static func isPrefix(_ text: String) -> Bool {
        text.utf8.count <= StreamName.largest
            && Array((text + "a").utf8.suffix(StreamName.largest)).withUnsafeBytes(StreamName.isValid)
            && text.utf8.first != UInt8(ascii: "~")
    }

    /// The target of the forwarded request.
    package var target: String {
        let query = [("prefix", prefix), ("after", after)].filter { !$0.1.isEmpty } + [("limit", "\(limit)")]
        return "/v1/streams?" + query.map { "\($0.0)=\(HTTPRequestHead.percentEncoded($0.1))" }.joined(separator: "&")
    }
}

/// A stream in a list.
package struct ListedStream: Equatable, Sendable {
    /// The name.
    package var stream: StreamName
    /// The partition of the stream.
    package var partition: Int
    /// The number of living objects; nil: not known until the next event of the stream is folded.
    package var objects: Int?
    /// The size of the living objects in bytes: models, ids, and fields as canonical JSON; nil: as for `objects`.
    package var bytes: Int?
    /// The number of sites that have not ended.
    package var sites: Int
    /// The seq of the last event; −1: no event since the epoch began.
    package var seq: Seq
    /// The gateway's clock in the last event, in milliseconds since 1970; nil: not known.
    package var atMs: Int64?

    /// A stream with these figures.
    package init(
        stream: StreamName,
        partition: Int,
        objects: Int?,
        bytes: Int?,
        sites: Int,
        seq: Seq,
        atMs: Int64?
    ) {
        (self.stream, self.partition, self.objects, self.bytes) = (stream, partition, objects, bytes)
        (self.sites, self.seq, self.atMs) = (sites, seq, atMs)
    }

    /// Returns the body of `GET /v1/streams`.
    ///
    /// - Parameters:
    ///   - streams: The streams of the page.
    ///   - epoch: The epoch of the log.
    ///   - next: The text after which the next page begins; nil: this page is the last.
    package static func body(_ streams: [ListedStream], of epoch: Epoch, next: String?) -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.member("epoch", epoch.description)
        writer.objects("streams", streams) { $1.write(to: &$0) }
        writer.member("next", next)
        return writer.finish()
    }

    /// Writes the members of the stream in a list.
    package func write(to object: inout JSONObjectWriter) {
        object.member("stream", stream.description)
        object.member("partition", partition)
        object.member("objects") { Self.append(objects.map(Int64.init), to: &$0) }
        object.member("bytes") { Self.append(bytes.map(Int64.init), to: &$0) }
        object.member("sites", sites)
        object.member("seq", seq)
        object.member("at") { Self.append(atMs, to: &$0) }
    }

    private static func append(_ number: Int64?, to bytes: inout [UInt8]) {
        if let number { bytes.append(integer: number) } else { bytes.append("null") }
    }

    /// Reads a stream of a node's response.
    package init(_ reader: inout JSONReader) throws(ReelError) {
        var (stream, partition, objects, bytes): (StreamName?, Int?, Int?, Int?)
        var (sites, seq, atMs): (Int, Seq, Int64?) = (0, .none, nil)
        try reader.object { (reader, key) throws(ReelError) in
            switch key.raw {
            case "stream": stream = StreamName(try reader.string())
            case "partition": partition = Int(clamping: try reader.integer(from: 0))
            case "objects" where try reader.kind() != .null: objects = Int(clamping: try reader.integer(from: 0))
            case "bytes" where try reader.kind() != .null: bytes = Int(clamping: try reader.integer(from: 0))
            case "sites": sites = Int(clamping: try reader.integer(from: 0))
            case "seq": seq = try reader.integer(from: -1)
            case "at" where try reader.kind() != .null: atMs = try reader.integer()
            default: try reader.skip()
            }
        }
        guard let stream, let partition else { throw reader.mismatch("found a stream without name or partition") }
        self.init(
            stream: stream,
            partition: partition,
            objects: objects,
            bytes: bytes,
            sites: sites,
            seq: seq,
            atMs: atMs
        )
    }
}

extension Router {
    /// Adds the route of the list of streams.
    public mutating func addStreamList(_ endpoint: Endpoint) {
        add("GET", "/v1/streams", query: ["prefix", "after", "limit"], endpoint)
    }
}
