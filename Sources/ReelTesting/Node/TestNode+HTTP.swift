internal import ReelClient
internal import ReelCore

// The requests by HTTP: snapshots, deltas, pages of events, and digests.
extension TestNode {
    /// An answer to a request.
    struct HTTPAnswer: Sendable {
        var status = 200
        var body: [UInt8] = []

        init(_ body: [UInt8]) { self.body = body }

        init(_ error: ReelError) {
            var problem = JSONObjectWriter()
            problem.member("code", error.code.rawValue)
            problem.member("detail", error.message)
            (status, body) = (error.code.status, problem.finish())
        }
    }

    /// Answers a request of a device. `question` is the body of a POST request; nil: a GET request.
    func answer(_ target: String, _ question: [UInt8]?, of device: String) -> HTTPAnswer {
        if let error = refusal(of: .reads, by: device) { return HTTPAnswer(error) }
        do throws(ReelError) {
            if let question {
                guard target == "/v1/digests" else { throw ReelError(.notFound, "found no path \(target)") }
                return HTTPAnswer(try digests(question))
            }
            return HTTPAnswer(try content(target))
        } catch {
            return HTTPAnswer(error)
        }
    }

    private func content(_ target: String) throws(ReelError) -> [UInt8] {
        let parts = target.split(separator: "?", maxSplits: 1)
        let path = parts.first?.split(separator: "/").map(String.init) ?? []
        guard path.count == 4, path[0] == "v1", let stream = StreamName(path[2]) else {
            throw ReelError(.notFound, "found no path \(target)")
        }
        var query: [String: String] = [:]
        for pair in parts.count > 1 ? parts[1].split(separator: "&") : [] {
            let sides = pair.split(separator: "=", maxSplits: 1)
            query[String(sides[0])] = sides.count > 1 ? String(sides[1]) : ""
        }
        let after = query["after"].flatMap { Seq($0) } ?? .none
        switch path[3] {
        case "events": return page(of: stream, after: after, query)
        case "snapshot", "delta": return try state(of: stream, after: after, query, isDelta: path[3] == "delta")
        default: throw ReelError(.notFound, "found no path \(target)")
        }
    }

    private func page(of stream: StreamName, after: Seq, _ query: [String: String]) -> [UInt8] {
        var events = events(of: stream, after + 1, head, max: query["limit"].flatMap { Int($0) } ?? 1_000)
        if let site = query["site"] {
            events.events.removeAll { records[Int($0.seq)].author.site.description != site }
        }
        var body = Array(#"{"epoch":"\#(Self.epoch)","events":["#.utf8)
        for (index, event) in events.events.enumerated() {
            if index > 0 { body.append(UInt8(ascii: ",")) }
            var value = event.value
            if query["outcome"] != nil {
                // The outcome stands after the seq.
                value = Array(#"{"outcome":"\#(records[Int(event.seq)].outcome)","#.utf8) + value.dropFirst()
            }
            value.withUnsafeBytes { DeliveredEvent.write(seq: event.seq, value: $0, to: &body) }
        }
        body += #"],"from":\#(events.from),"head":\#(head),"partition":0,"#.utf8
        body += #""stream":"\#(stream)","to":\#(events.to)}"#.utf8
        return body
    }

    /// Returns the state of a stream at the head of the log.
    func fold(of stream: StreamName) -> Fold {
        var fold = streams[stream]?.fold ?? Fold(stream: stream, partition: 0, epoch: Self.epoch)
        fold.advance(to: head)
        return fold
    }

    private func state(
        of stream: StreamName,
        after: Seq,
        _ query: [String: String],
        isDelta: Bool
    ) throws(ReelError) -> [UInt8] {
        if isDelta, query["epoch"] != Self.epoch.description {
            throw ReelError(.epochChanged, "found the epoch \(query["epoch"] ?? ""), expected \(Self.epoch)")
        }
        var fold = fold(of: stream)
        let cut = query["model"].flatMap { model in query["id"].flatMap { SnapshotCut(model: model, id: $0) } }
        if isDelta, cut == nil, after < fold.horizon {
            throw ReelError(.truncated, "found seq \(after), expected at least \(fold.horizon)")
        }
        var writer =
            if let cut { try fold.rest(after: after, beyond: cut) } else { try fold.snapshot(after: after) }
        var body: [UInt8] = []
        writer.writeAll(to: &body)
        return body
    }

    private func digests(_ question: [UInt8]) throws(ReelError) -> [UInt8] {
        guard let asked = question.withUnsafeBytes({ JSONValue(parsing: $0) })?.object,
            let names = asked["streams"]?.array
        else { throw ReelError(.badRequest, "found no JSON with the member streams") }
        guard asked["epoch"]?.string == Self.epoch.description else {
            throw ReelError(.epochChanged, "found another epoch than \(Self.epoch)")
        }
        let entries = names.compactMap { entry -> String? in
            guard let stream = entry.object?["stream"]?.string.flatMap({ StreamName($0) }) else { return nil }
            var fold = fold(of: stream)
            let digest = Hex64.text(fold.digest())
            return #"{"stream":"\#(stream)","partition":0,"seq":\#(fold.seq),"consumed":\#(fold.consumed),"#
                + #""digest":"\#(digest)"}"#
        }
        return Array(#"{"epoch":"\#(Self.epoch)","streams":[\#(entries.joined(separator: ","))]}"#.utf8)
    }
}
