// Detects missing lines: the content of a history must agree with its end.
extension HistoryWalk {
    /// Reads a line that says that the party no longer publishes as this site.
    mutating func left(_ line: HistoryLine) throws(Fault) {
        result.left.insert(SiteKey(stream: try stream(line), site: try site(try line.required(line.site, "site"))))
    }

    mutating func ended(_ line: HistoryLine) throws(Fault) {
        result.isWhole = true
        result.endWall = wall(line)
        result.endLine = line.place.lowerBound
        result.unacked = try line.required(line.unacked, "unacked")
        let before = result.lines - 1
        if let lines = line.lines, lines != before {
            doubt(line.place.lowerBound, "it says that \(lines) lines stand before it, and there are \(before)")
        }
        let open = result.sent.reduce(Int64(0)) { count, sent in
            result.left.contains(sent.key) ? count : count + sent.value.count(outside: settled[sent.key] ?? Coverage())
        }
        if open > result.unacked {
            doubt(
                line.place.lowerBound,
                "it says that \(result.unacked) events were never acked, and \(open) that were sent have no ack"
            )
        }
        for (stream, start) in subscriptions.sorted(by: { $0.value < $1.value }) where !told.contains(stream) {
            doubt(start, "it subscribes to stream \(stream.string), and no line of reached says how far the party came")
        }
    }

    private mutating func doubt(_ start: Int, _ what: String) {
        result.doubts.append("\(file.place(lineAt: start)): \(what): lines are missing; record the run again")
    }
}
