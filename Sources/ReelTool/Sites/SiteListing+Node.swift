import ReelCore
import ReelNode

extension SiteListing {
    /// Reads the sites from nodes, page by page.
    ///
    /// - Parameters:
    ///   - stream: the stream.
    ///   - caller: the client.
    ///   - isEnough: called with the sites that were read; true to stop.
    init(
        of stream: StreamName,
        from caller: NodeCaller,
        isEnough: ([ListedSite]) -> Bool = { _ in false }
    ) async throws {
        var (first, latestPage): (Page?, Page?)
        var after = Seq.none
        // A site that publishes while the pages are read is also in a later page.
        var latest: [Site: ListedSite] = [:]
        while true {
            // A node that has folded less than the node before could have a site at a seq up to `after` that is now at
            // a later one. So the next page needs at least the seq of the page before.
            let place = latestPage.map { "&after=\(after)&epoch=\($0.epoch)&min_seq=\($0.seq)" } ?? ""
            let target = "/v1/streams/\(stream)/sites?limit=\(StateRequest.sitesMax)\(place)"
            let page = try Page(try await caller.get(target))
            for site in page.sites { latest[site.site] = site }
            if first == nil { first = page }
            latestPage = page
            guard page.to > after, page.to < page.seq, !isEnough(Array(latest.values)) else { break }
            after = page.to
        }
        guard let first else { throw CommandError(.badData, "no page of sites was read") }
        self.init(
            stream: stream,
            epoch: first.epoch,
            partition: first.partition,
            seq: first.seq,
            next: first.next,
            living: first.living,
            ended: first.ended
        )
        sites = latest.values.sorted { $0.seq < $1.seq }
    }
}

/// An answer to `GET …/sites`.
private struct Page {
    var epoch: Epoch
    var partition: Int
    var seq: Seq
    var next: Epoch?
    var living: Int
    var ended: Int
    var sites: [ListedSite] = []
    var to: Seq

    /// Parses the body of an answer.
    ///
    /// - Throws: a `CommandError` with exit code 4 if it is not such an answer.
    init(_ body: [UInt8]) throws(CommandError) {
        var (epoch, next): (Epoch?, Epoch?)
        var (partition, seq, to, living, ended): (Int64?, Seq?, Seq?, Int64?, Int64?)
        var sites: [ListedSite] = []
        try JSONReader.members(ofAnswer: body) { (reader, key) throws(ReelError) in
            switch key.raw {
            case "epoch": epoch = Epoch(try reader.string())
            case "next": next = Epoch(try reader.string())
            case "partition": partition = try reader.integer()
            case "seq": seq = try reader.integer(from: -1)
            case "to": to = try reader.integer(from: -1)
            case "living": living = try reader.integer()
            case "ended": ended = try reader.integer()
            case "sites": try reader.array { (reader) throws(ReelError) in sites.append(try ListedSite(&reader)) }
            default: try reader.skip()
            }
        }
        guard let epoch, let partition, let seq, let to, let living, let ended else {
            throw CommandError(.badData, "a node's answer has no sites; a node of this build is expected")
        }
        (self.epoch, self.next, self.partition) = (epoch, next, Int(clamping: partition))
        (self.seq, self.to, self.living, self.ended) = (seq, to, Int(clamping: living), Int(clamping: ended))
        self.sites = sites
    }
}
