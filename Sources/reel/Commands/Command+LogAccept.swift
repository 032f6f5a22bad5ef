import ReelLog

extension Command {
    /// Settles what is doubtful about a log's file.
    static let logAccept = Command(
        "log accept",
        "take the log's file for whole, after it was copied or restored",
        about: """
            A log's file notes which file it is. A node that finds it copied, restored, or without its -wal starts, and
            warns in its logger, in /readyz, in reel_log_file_changed and in the doctor: where the file lacks records,
            seqs that clients hold come to name other events. Only an operator knows whether it does.

            If it lacks none, such as a file that was copied to another disk after a clean stop, this command stores
            what the file is now, and the warning ends, also in running nodes. It changes no record. If records may be
            missing, run `reel epoch new` instead, which ends the warning too. See docs/reference/log.md.
            """,
        settings: [LogArguments.log, LogArguments.logFolder],
        examples: [
            Example("reel log accept", "the log in ./reel-data is whole"),
            Example("reel log accept --log sqlite:/var/lib/reel/log.sqlite", "a log elsewhere"),
        ]
    ) { options, console in
        let path = try LogArguments.file(options)
        // It says what is wrong with a file that is no log.
        let log = try LogArguments.open(options, console)
        let epoch = log.epoch
        log.close()
        guard let finding = try SQLiteLogStore(path: path, report: LogReports.lockWait(console, nil)).accept() else {
            try console.print("nothing was doubtful about `\(path)`, the log \(epoch); nothing was changed")
            return .done
        }
        console.audit("log accept", log: "sqlite:\(path)", finding)
        try console.print("accepted `\(path)` as it is, the log \(epoch); found was: \(finding)")
        return .done
    }
}
