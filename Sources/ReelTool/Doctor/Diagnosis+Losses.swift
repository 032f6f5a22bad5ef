import ReelCore

extension Diagnosis {
    /// The findings that the log may have lost records of the current epoch.
    var losses: [Finding] {
        var findings: [Finding] = []
        let nodes = report.living.filter { $0.metrics.value("reel_log_file_changed") > 0 }.map(\.name)
        let notice: String? = if case .success(let log)? = report.log { log.notice } else { nil }
        if !nodes.isEmpty || notice != nil {
            findings.append(
                Finding(
                    .problem,
                    "log",
                    (nodes.isEmpty ? "its file" : "its file, as \(nodes.joined(separator: ", ")) found it,")
                        + " has changed: it was copied or restored, or its -wal was missing",
                    do:
                        "If records may be missing, run `reel epoch new`, with `--from-snapshot DIR` if a snapshot"
                        + " node has folded more: clients then take the state of a new epoch. If the file is complete,"
                        + " run `reel log accept`."
                )
            )
        }
        for node in report.living {
            let count = node.metrics.value("reel_gateway_ahead_of_log_total")
            guard count > 0 else { continue }
            findings.append(
                Finding(
                    .warning,
                    "log",
                    "clients of \(node.name) have seqs of this epoch that the log does not have, reported"
                        + " \(counted(whole(count), "time")) since the node started",
                    do: "The node's log lines name them (`a client is ahead of the log`). If the log lost records, or a"
                        + " backup was restored, run `reel epoch new`. A client can also have sent a wrong seq."
                )
            )
        }
        return findings
    }
}
