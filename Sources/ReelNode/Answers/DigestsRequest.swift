public import ReelCore
public import ReelNet

/// A request for the digests of many streams. A client that has the state of a digest already needs no further request
/// for that stream.
public struct DigestsRequest: Equatable, Sendable {
    /// A stream, with the seq as of which the client holds its state.
    public struct HeldState: Equatable, Sendable {
        /// The stream.
        public var stream: StreamName
        /// The seq of the client's state; −1: none.
        public var seq: Seq

        /// A stream that the client holds as of `seq`.
        public init(stream: StreamName, seq: Seq) {
            (self.stream, self.seq) = (stream, seq)
        }
    }

    /// The epoch of the seqs.
    public var epoch: Epoch
    /// The streams, in the order of the answer.
    public var streams: [HeldState]
    /// The streams that the client may read by its token, as a gateway with keys reports; nil: no gateway reports it.
    /// It has an effect on a node without keys, which cannot check the token itself.
    public var readable: [StreamPattern]?

    /// The maximum number of streams in a request.
    package static let streamsMax = 1_000

    /// The path of the request.
    package static let path = "/v1/digests"

    /// A request for the digests of these streams.
    public init(of streams: [HeldState], epoch: Epoch) {
        (self.streams, self.epoch) = (streams, epoch)
    }

    /// Reads the body of an HTTP request. Throws the problem for the client.
    public init(_ request: HTTPRequest) throws(Problem) {
        (streams, epoch) = try request.json { (object) throws(ReelError) in
            let streams = try object.array("streams") { (reader) throws(ReelError) in
                let entry = try JSONObject(try reader.raw(), levels: 2, shape: .badRequest)
                let seq = try entry.required("seq", try entry.integer("seq", from: .none))
                return HeldState(stream: try entry.stream(), seq: seq)
            }
            return (try object.required("streams", streams), try object.required("epoch", object.epoch()))
        }
        readable = try StreamPattern.readable(request.head)
        guard (1...Self.streamsMax).contains(streams.count) else {
            var problem = Problem(.limit, "found \(streams.count) streams, expected 1 to \(Self.streamsMax)")
            problem.limit = Self.streamsMax
            throw problem
        }
    }

    /// The body of the forwarded request.
    package var body: [UInt8] {
        var writer = JSONObjectWriter()
        writer.member("epoch", epoch.description)
        writer.objects("streams", streams) { object, held in
            object.member("stream", held.stream.description)
            object.member("seq", held.seq)
        }
        return writer.finish()
    }
}

/// The digest of one stream in an answer, or the reason why the answer has none.
package struct StreamDigest: Equatable, Sendable {
    /// The digest of a state, with the numbers that tell which state it is.
    package struct State: Equatable, Sendable {
        /// The partition of the stream.
        package var partition: Int
        /// The seq of the partition as of which the digest is correct.
        package var seq: Seq
        /// The number of consumed events.
        package var consumed: Int64
        /// The digest of the state.
        package var digest: UInt64
        /// The epoch that follows, if the end of this epoch is folded.
        package var next: Epoch?

        /// The digest of a state as of `seq`.
        package init(partition: Int, seq: Seq, consumed: Int64, digest: UInt64, next: Epoch?) {
            (self.partition, self.seq, self.consumed) = (partition, seq, consumed)
            (self.digest, self.next) = (digest, next)
        }
    }

    /// The stream.
    package var stream: StreamName
    /// The digest, or the reason why there is none.
    package var state: Result<State, Problem>

    /// The digest of a stream, or the reason why there is none.
    package init(_ stream: StreamName, _ state: Result<State, Problem>) {
        (self.stream, self.state) = (stream, state)
    }

    /// Returns the body of the answer to `POST /v1/digests`.
    package static func body(_ digests: [StreamDigest], of epoch: Epoch) -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.member("epoch", epoch.description)
        writer.objects("streams", digests) { $1.write(to: &$0) }
        return writer.finish()
    }

    private func write(to object: inout JSONObjectWriter) {
        object.member("stream", stream.description)
        switch state {
        case .success(let state):
            object.member("partition", state.partition)
            object.member("seq", state.seq)
            object.member("consumed", state.consumed)
            object.member("digest", Hex64.text(state.digest))
            object.member("next", state.next?.description)
        case .failure(let problem):
            object.object("error") { error in
                error.member("code", problem.code.rawValue)
                error.member("detail", problem.detail)
                error.member("retry_ms", problem.retryMs)
                error.member("seq", problem.seq)
                error.member("goal", problem.goal)
            }
        }
    }
}

extension Router {
    /// Adds the route of the digests.
    public mutating func addDigests(_ endpoint: Endpoint) {
        add("POST", DigestsRequest.path, endpoint)
    }
}
