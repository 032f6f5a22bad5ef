import ReelCore

extension LoadReport {
    /// Returns the report as one JSON object for programs. Times are in nanoseconds. `expectations`: the expected and
    /// the measured values.
    public func json(_ expectations: [(text: String, isReached: Bool, found: String)]) -> String {
        var object = JSONObjectWriter()
        object.member("complete", isComplete)
        object.member("as_expected", isComplete && expectations.allSatisfy(\.isReached))
        object.objects("expectations", expectations) { object, check in
            object.member("expected", check.text)
            object.member("found", check.found)
            object.member("reached", check.isReached)
        }
        object.object("plan", plan.write)
        object.member("due", statistics.due)
        object.member("acked", statistics.acked)
        object.member("unacked", unacked)
        object.member("sent", statistics.sent)
        object.member("resent", statistics.resent)
        object.member("nacked", statistics.nacked)
        object.member("delivered", statistics.delivered)
        object.member("behind", behind)
        object.member("fetches", statistics.fetches)
        object.member("lagged", statistics.lagged)
        object.member("lost", statistics.reconnects)
        object.member("cold_failed", statistics.coldFailed)
        object.member("publishing_s") { $0.append(number: publishingSeconds) }
        object.object("ack_ns", statistics.ack.write)
        object.object("delivery_ns", statistics.delivery.write)
        object.object("cold_start_ns", statistics.coldStart.write)
        object.object("pause_ns", statistics.pause.write)
        object.object("codes") { object in
            for (code, count) in statistics.codes.sorted(by: { $0.key < $1.key }) {
                object.member(named: code) { $0.append(integer: count) }
            }
        }
        object.member("nodes_known", asked?.known)
        object.member("nodes_answered", asked?.answered)
        object.member("closed", closed) { $0.append(quoted: $1) }
        object.member("problems", problems) { $0.append(quoted: $1) }
        object.objects("seconds", statistics.seconds) { object, second in
            object.member("acked", second.acked)
            object.member("delivered", second.delivered)
            object.member("connected", second.connected)
            object.member("ack_p99_ns", second.ack.quantile(0.99))
            object.member("delivery_p99_ns", second.delivery.quantile(0.99))
        }
        return String(decoding: object.finish(), as: UTF8.self)
    }
}

extension LoadPlan {
    /// Writes the plan with the names of the command line.
    fileprivate func write(_ object: inout JSONObjectWriter) {
        object.member("urls", urls) { $0.append(quoted: $1) }
        object.member("stream", streams.first?.description)
        object.member("streams", streams.count)
        object.member("publishers", publishers)
        object.member("sleepers", sleepers)
        object.member("readers", readers)
        object.member("editors", editors)
        object.member("coldstarts", coldStarts)
        object.member("rate") { $0.append(number: rate) }
        object.member("size", size)
        if let stormSeconds { object.member("storm") { $0.append(number: stormSeconds) } }
        if let seconds { object.member("seconds") { $0.append(number: seconds) } }
        object.member("settle") { $0.append(number: settleSeconds) }
        object.member("seed", seed)
    }
}

extension LatencyHistogram {
    fileprivate func write(_ object: inout JSONObjectWriter) {
        object.member("count", count)
        object.member("p50", quantile(0.5))
        object.member("p90", quantile(0.9))
        object.member("p99", quantile(0.99))
        object.member("p99.9", quantile(0.999))
        object.member("max", max)
    }
}
