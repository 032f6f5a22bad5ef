import ReelLog

extension Command {
    /// `reel log accept`: accepts a log's file that was copied or restored.
    static let logAccept = Command(
        "log accept",
        "accept the log's file as complete, after it was copied or restored",
        about: """
            A log's file stores its own identity. If a node finds that the file was copied or restored, or that its -wal
            is missing, it starts and warns: in log lines, in /readyz, in reel_log_file_changed and in `reel doctor`. If
            records are missing, new events get seqs that clients already know for other events. Only an operator can
            know whether records are missing.

            If none is missing, for example because the file was copied after a clean stop, this command stores the new
            identity. The warning ends, also in running nodes. No record changes. If records may be missing, run
            `reel epoch new` instead; it also ends the warning. See docs/reference/log.md.
            """,
        settings: [LogArguments.log, LogArguments.logFolder],
        examples: [
            Example("reel log accept", "the log in ./reel-data is complete"),
            Example("reel log accept --log sqlite:/var/lib/reel/log.sqlite", "a log in another place"),
        ]
    ) { options, console in
        let path = try LogArguments.file(options)
        // Opened first, because this error says what is wrong with a file that is not a log.
        let log = try LogArguments.open(options, console)
        let epoch = log.epoch
        log.close()
        guard let finding = try SQLiteLogStore(path: path, report: LogReports.lockWait(console, nil)).accept() else {
            try console.print("found no warning about `\(path)`, the log \(epoch); nothing was changed")
            return .done
        }
        console.audit("log accept", log: "sqlite:\(path)", finding)
        try console.print("accepted `\(path)`, the log \(epoch); the warning was: \(finding)")
        return .done
    }
}
