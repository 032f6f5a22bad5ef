import ReelCore
import ReelNode

/// The sites of a stream that a retirement ends.
struct RetirementPlan {
    let listing: SiteListing
    /// The largest seq of the last event of a site that ends.
    let before: Seq
    /// The sites that end, the most idle first.
    let ending: [ListedSite]
    private let idle: Seq
    private let living: [ListedSite]

    /// The largest number of sites in the table.
    private static let shownMax = 20

    /// A plan that ends the sites without an event among the last `idle` records.
    ///
    /// - Throws: a `CommandError` with exit code 1 if the stream has no sites or the epoch has ended; with exit code 2
    ///   if no site would be left.
    init(_ listing: SiteListing, idle: Seq) throws(CommandError) {
        try listing.checkThatItIsThere()
        if let next = listing.next {
            throw CommandError(
                .failed,
                "the epoch \(listing.epoch) has ended, and the next one is \(next): when that is the current log, run"
                    + " the same command again"
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

    /// Returns the lines that are printed before anything is written. `isDry`: true for a dry run.
    func lines(nowMs: Int64, isDry: Bool) -> [String] {
        guard let first = ending.first, let last = ending.last else {
            let mostIdle = living.first.map { "; the most idle one published \(idleness(of: $0)) ago" } ?? ""
            return [
                listing.summary,
                "nothing to retire: no site has been idle for \(idle) records of the partition\(mostIdle)",
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
