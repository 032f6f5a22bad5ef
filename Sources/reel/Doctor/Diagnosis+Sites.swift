import ReelCore

extension Diagnosis {
    /// The streams that run out of sites, as the snapshot nodes name them.
    var crowds: [Finding] {
        var streams: [String: Int] = [:]
        for case .success(let named)? in report.living.map(\.crowd) {
            // A node that is ahead of another one knows better, and says about the same.
            for (stream, sites) in named { streams[stream] = max(streams[stream] ?? 0, sites) }
        }
        var findings = streams.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.compactMap { stream, sites in
            Finding.crowd(stream, sites: sites, about: "limits")
        }
        for node in report.living where streams.isEmpty {
            guard case .failure(let silence)? = node.crowd else { continue }
            let count = whole(node.metrics.value("reel_snapshot_half_full_streams"))
            let most = whole(node.metrics.value("reel_snapshot_largest_stream_sites"))
            findings.append(
                Finding(
                    most >= Limits.sites ? .problem : .warning,
                    "limits",
                    "\(node.name) has \(counted(count, "stream")) with half or more of \(Limits.sites) sites, the"
                        + " largest with \(most), and does not name them: \(silence.message)",
                    do: "Ask with a token that has the right `inspect`, or see the node's journal, which names them."
                )
            )
            break
        }
        return findings
    }
}
