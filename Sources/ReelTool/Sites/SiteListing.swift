import ReelCore
import ReelNode

/// The sites of a stream, as of one seq of its partition.
struct SiteListing {
    var stream: StreamName
    var epoch: Epoch
    var partition: Int
    /// The seq of the listing; if it was read in pages, the seq of the first page.
    var seq: Seq
    /// The next epoch; nil if this one has not ended.
    var next: Epoch?
    /// The number of sites that have not ended.
    var living = 0
    /// The number of sites that have ended and are not forgotten.
    var ended = 0
    /// The sites, sorted by the seqs of their last events: the most idle first.
    var sites: [ListedSite] = []

    /// Returns the number of records in the partition after the last event of a site.
    func idleSeqs(_ site: ListedSite) -> Int64 { max(0, seq - site.seq) }

    /// Checks that the stream has sites: without sites, no event was ever published to it.
    ///
    /// - Throws: a `CommandError` with exit code 1 if there is none.
    func checkThatItIsThere() throws(CommandError) {
        guard living == 0, ended == 0 else { return }
        throw CommandError(
            .failed,
            "found no sites of stream \(stream) in partition \(partition) up to seq \(seq): check that its name is"
                + " spelled as on the devices"
        )
    }

    /// A line with the numbers of sites.
    var summary: String {
        "\(stream): \(living) of \(Limits.sites) sites, \(ended) ended and not forgotten; as of seq \(seq) of partition"
            + " \(partition), epoch \(epoch)"
    }

    /// Returns a table of `sites`, as lines.
    func table(_ sites: some Sequence<ListedSite>, nowMs: Int64) -> [String] {
        var table = TextTable(
            "SITE",
            "USER",
            "OP",
            "SEQ",
            "IDLE SEQS",
            "IDLE TIME",
            "ENDED AT",
            numbers: ["OP", "SEQ", "IDLE SEQS", "IDLE TIME", "ENDED AT"]
        )
        for site in sites {
            table.add(
                "\(site.site)",
                site.by ?? "-",
                "\(site.op)",
                "\(site.seq)",
                "\(idleSeqs(site))",
                site.idleMs(nowMs: nowMs).map { age(ms: $0) } ?? "-",
                site.end == .none ? "-" : "\(site.end)"
            )
        }
        return table.lines
    }

    /// Returns a site as a line of JSON, in the form of a node's answer.
    func json(of site: ListedSite, nowMs: Int64) -> [UInt8] {
        var line = JSONObjectWriter()
        site.write(to: &line, head: max(seq, site.seq), nowMs: nowMs)
        return line.finishLine()
    }
}
