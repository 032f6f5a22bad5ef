public import ReelCore
public import ReelNet

/// A stream that has half or more of the sites that a stream may have.
public struct CrowdedStream: Equatable, Sendable {
    /// The number of sites from which on a stream is crowded.
    public static let sitesMin = Limits.sites / 2

    /// The stream.
    public var stream: StreamName
    /// The partition that the stream lies in.
    public var partition: Int
    /// The seq of the partition that the number is true of.
    public var seq: Seq
    /// The sites that have not ended.
    public var sites: Int

    /// A stream with this number of sites.
    public init(stream: StreamName, partition: Int, seq: Seq, sites: Int) {
        self.stream = stream
        self.partition = partition
        self.seq = seq
        self.sites = sites
    }

    /// An answer names at most this number of streams.
    private static let listedMax = 100

    /// The answer to `GET /v1/sites`: those of the streams that the client may inspect, the one with the most sites
    /// first. Throws 403 where the client may inspect no stream at all.
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
