public import ReelCore
public import ReelNet

/// A stream that has at least half of the sites that a stream may have.
public struct CrowdedStream: Equatable, Sendable {
    /// The number of sites from which on a stream is crowded.
    public static let sitesMin = Limits.sites / 2

    /// The stream.
    public var stream: StreamName
    /// The partition of the stream.
    public var partition: Int
    /// The seq of the partition as of which the number is correct.
    public var seq: Seq
    /// The number of sites that have not ended.
    public var sites: Int

    /// A stream with this number of sites.
    public init(stream: StreamName, partition: Int, seq: Seq, sites: Int) {
        self.stream = stream
        self.partition = partition
        self.seq = seq
        self.sites = sites
    }

    /// The maximum number of streams in a response.
    private static let listedMax = 100

    /// Returns the response to `GET /v1/sites`: the streams that the client may inspect, the one with the most sites
    /// first.
    ///
    /// - Parameters:
    ///   - streams: The crowded streams of the node.
    ///   - epoch: The epoch of the log.
    ///   - access: The rights of the client.
    /// - Throws: 403 if the client may inspect no stream at all.
    public static func response(
        _ streams: [CrowdedStream],
        of epoch: Epoch,
        for access: Access
    ) throws(Problem) -> HTTPResponse {
        try access.requireInspect()
        let shown = streams.filter { access.mayInspect($0.stream) }
            .sorted { ($1.sites, $0.stream.description) < ($0.sites, $1.stream.description) }
            .prefix(listedMax)
        var writer = JSONObjectWriter()
        writer.member("epoch", epoch.description)
        writer.member("limit", Limits.sites)
        writer.objects("streams", shown) { object, stream in
            object.member("stream", stream.stream.description)
            object.member("partition", stream.partition)
            object.member("seq", stream.seq)
            object.member("sites", stream.sites)
        }
        return .json(writer.finish())
    }
}
