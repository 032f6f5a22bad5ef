import ReelCore

extension Diagnosis {
    /// What says that the log may have lost records that it had before in the same epoch.
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
                        + " is not the one that it was: it was copied or restored, or its -wal was missing",
                    do:
                        "If records may be missing, run `reel epoch new`, with `--from-snapshot DIR` where a snapshot"
                        + " node has folded more: clients then take the state of a new epoch. If the file is whole, run"
                        + " `reel log accept`."
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
                    "clients of \(node.name) hold seqs of this epoch that it does not have, told"
                        + " \(counted(whole(count), "time")) since the node started",
                    do: "The node's journal names them (`a client is ahead of the log`). If the log lost records, or a"
                        + " backup was restored, run `reel epoch new`. A client may also have named a wrong seq."
                )
            )
        }
        return findings
    }
}
