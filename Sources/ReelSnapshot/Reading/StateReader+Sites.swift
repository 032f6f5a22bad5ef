import ReelCore
import ReelNode
import ReelSQLite

extension StateReader {
    /// A page of the sites of a stream, in the order of the seqs of their last events.
    struct SitesPage {
        /// The seq as of which the page is correct.
        var seq: Seq
        /// The epoch that follows, if the end of this epoch is folded.
        var next: Epoch?
        /// The number of the stream's sites that have not ended.
        var living = 0
        /// The number of the stream's sites that have ended and are not forgotten.
        var ended = 0
        var sites: [ListedSite] = []
        /// The seq up to which the page is complete: it holds every site with a last event after `after` and up to this
        /// seq.
        var to: Seq
        /// True if no event was ever published to the stream.
        var isUnpublished = false
    }

    /// The maximum size of the chunks of events that one page reads to find times, in bytes.
    private static let timesBytes = 16 << 20

    /// Returns at most `limit` sites of a stream, beginning with the first one with a last event after the seq `after`.
    /// Adds the time of that event if the index of events holds it.
    func sites(of stream: StreamName, after: Seq, limit: Int) throws -> SitesPage {
        try reading(stream) { connection, position in
            guard after <= position.seq else { throw Self.behind(position.seq, after) }
            var page = SitesPage(seq: position.seq, next: position.following, to: position.seq)
            guard
                let stored = try StoredStream(
                    sitesOf: stream,
                    identity: identity,
                    seq: position.seq,
                    in: connection
                )
            else {
                page.isUnpublished = true
                return page
            }
            var known = stored.fold.sites().compactMap { site in stored.fold.site(site).map { ListedSite(site, $0) } }
            page.living = known.count { $0.end == .none }
            page.ended = known.count - page.living
            known.removeAll { $0.seq <= after }
            known.sort { $0.seq < $1.seq }
            if known.count > limit {
                page.to = known[limit].seq - 1
                known.removeSubrange(limit...)
            }
            page.sites = known
            try addTimes(to: &page, of: stored, position, in: connection)
            return page
        }
    }

    /// Looks up the times of the sites' last events. Cuts the page where that would read more than `timesBytes`.
    private func addTimes(
        to page: inout SitesPage,
        of stream: StoredStream,
        _ position: StoredPosition,
        in connection: Connection
    ) throws {
        var chunks = try StoredChunks(
            of: stream.id,
            from: position.oldestEvent,
            end: stream.lastEvent,
            in: connection
        )
        var times: [Seq: Int64] = [:]
        var (looked, bytes) = (position.oldestEvent - 1, 0)
        let wanted = Set(page.sites.map(\.seq))
        for index in page.sites.indices where page.sites[index].seq > looked {
            guard bytes < Self.timesBytes else {
                page.to = page.sites[index].seq - 1
                page.sites.removeSubrange(index...)
                break
            }
            chunks.seek(page.sites[index].seq)
            guard let (last, data) = try chunks.next() else { break }
            looked = last
            bytes += data.count
            let isWhole = EventChunk.forEach(in: data) { seq, _, value in
                if wanted.contains(seq), let time = EventIntake.clock(of: value) { times[seq] = time }
                return true
            }
            guard isWhole else { throw SnapshotFile.Unusable(reason: "found a damaged chunk of events") }
        }
        for index in page.sites.indices { page.sites[index].atMs = times[page.sites[index].seq] }
    }
}

extension StateReader.SitesPage {
    /// Returns the page as the JSON of `GET …/sites`.
    func json(of stream: StreamName, _ identity: SnapshotFile.Identity, nowMs: Int64) -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.member("stream", stream.description)
        writer.member("epoch", identity.epoch.description)
        writer.member("partition", identity.partition)
        writer.member("seq", seq)
        writer.member("next", next?.description)
        writer.member("limit", Limits.sites)
        writer.member("living", living)
        writer.member("ended", ended)
        writer.objects("sites", sites) { $1.write(to: &$0, head: seq, nowMs: nowMs) }
        writer.member("to", to)
        return writer.finish()
    }
}
