import ReelCore

extension Diagnosis {
    /// The findings about streams that are close to the limit of sites, from the snapshot nodes.
    var crowds: [Finding] {
        var streams: [String: Int] = [:]
        for case .success(let named)? in report.living.map(\.crowd) {
            // Nodes at different seqs report slightly different numbers: the largest is used.
            for (stream, sites) in named { streams[stream] = max(streams[stream] ?? 0, sites) }
        }
        var findings = streams.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.compactMap { stream, sites in
            Finding.crowd(stream, sites: sites, about: "limits")
        }
        for node in report.living where streams.isEmpty {
            guard case .failure(let silence)? = node.crowd else { continue }
            let count = whole(node.metrics.value("reel_snapshot_half_full_streams"))
            let largest = whole(node.metrics.value("reel_snapshot_largest_stream_sites"))
            findings.append(
                Finding(
                    largest >= Limits.sites ? .problem : .warning,
                    "limits",
                    "\(node.name) has \(counted(count, "stream")) with half or more of \(Limits.sites) sites, the"
                        + " largest with \(largest), and does not name them: \(silence.message)",
                    do: "Use a token that has the right `inspect`, or see the node's log lines, which name them."
                )
            )
            break
        }
        return findings
    }
}
