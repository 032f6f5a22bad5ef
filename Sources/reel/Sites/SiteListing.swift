import ReelCore
import ReelNode

/// The sites of a stream, as of one seq of its partition.
struct SiteListing {
    var stream: StreamName
    var epoch: Epoch
    var partition: Int
    /// The seq that the listing is true of; where it was read in pages, that of the first one.
    var seq: Seq
    /// The epoch that follows; nil: this one has not ended.
    var next: Epoch?
    /// The sites that have not ended.
    var living = 0
    /// Those that have ended and are not forgotten.
    var ended = 0
    /// By the seqs of their last events, the most idle first.
    var sites: [ListedSite] = []

    /// Records of the partition behind the last event of a site.
    func idleSeqs(_ site: ListedSite) -> Int64 { max(0, seq - site.seq) }

    /// A stream without sites is none that anybody has written. Ends with 1 then.
    func checkThatItIsThere() throws(CommandError) {
        guard living == 0, ended == 0 else { return }
        throw CommandError(
            .failed,
            "found no sites of stream \(stream) in partition \(partition) up to seq \(seq): see whether its name is"
                + " spelt as the devices spell it"
        )
    }

    /// The number of sites, in a line.
    var summary: String {
        "\(stream): \(living) of \(Limits.sites) sites, \(ended) ended and not forgotten; as of seq \(seq) of partition"
            + " \(partition), epoch \(epoch)"
    }

    /// A table of these sites.
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

    /// A site as a line of JSON, as nodes answer it.
    func json(of site: ListedSite, nowMs: Int64) -> [UInt8] {
        var line = JSONObjectWriter()
        site.write(to: &line, head: max(seq, site.seq), nowMs: nowMs)
        return line.finishLine()
    }
}
