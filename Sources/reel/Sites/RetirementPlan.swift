import ReelCore
import ReelNode

/// Which sites of a stream a retirement ends.
struct RetirementPlan {
    let listing: SiteListing
    /// Sites whose last event lies at or before this seq end.
    let before: Seq
    /// The sites that end, the most idle first.
    let ending: [ListedSite]
    private let idle: Seq
    private let living: [ListedSite]

    /// A table shows at most this number of sites.
    private static let shownMax = 20

    /// Ends the sites without an event among the last `idle` records. Ends with 1 where that is not possible: for a
    /// stream that nobody has written, an epoch that has ended, and where no site would be left.
    init(_ listing: SiteListing, idle: Seq) throws(CommandError) {
        try listing.checkThatItIsThere()
        if let next = listing.next {
            throw CommandError(
                .failed,
                "the epoch \(listing.epoch) has ended, and goes on in \(next): once that is the current log, run the"
                    + " same command again"
            )
        }
        self.listing = listing
        self.idle = idle
        before = listing.seq - idle
        living = listing.sites.filter { $0.end == .none }
        ending = living.filter { [before] in $0.seq <= before }
        if let latest = ending.last, ending.count == living.count {
            throw CommandError(
                .usage,
                "--idle-events is \(idle), which would end all \(living.count) sites of \(listing.stream); expected is"
                    + " a number that leaves one, more than \(listing.idleSeqs(latest))"
            )
        }
    }

    /// What an operator is told before anything is written.
    func lines(nowMs: Int64, isDry: Bool) -> [String] {
        guard let first = ending.first, let last = ending.last else {
            let most = living.first.map { "; the most idle one wrote \(idleness(of: $0)) ago" } ?? ""
            return [
                listing.summary,
                "nothing to retire: no site has been idle for \(idle) records of the partition\(most)",
            ]
        }
        var lines = [listing.summary]
        if isDry {
            lines += listing.table(ending.prefix(Self.shownMax), nowMs: nowMs)
            if ending.count > Self.shownMax { lines.append("… and \(ending.count - Self.shownMax) more") }
        }
        lines += [
            "\(isDry ? "would end" : "ending"): \(counted(ending.count, "site")) without an event after seq \(before)",
            "the most idle: \(words(of: first, nowMs))",
            "the least idle: \(words(of: last, nowMs))",
            "left: \(living.count - ending.count) of \(Limits.sites) sites",
        ]
        if isDry { lines.append("nothing was written") }
        return lines
    }

    private func words(of site: ListedSite, _ nowMs: Int64) -> String {
        let time = site.idleMs(nowMs: nowMs).map { ", \(age(ms: $0)) ago" } ?? ""
        return "\(site.site) of \(site.by ?? "no user"), \(idleness(of: site)) ago\(time)"
    }

    private func idleness(of site: ListedSite) -> String { counted(Int(clamping: listing.idleSeqs(site)), "record") }
}
