import ReelCore
import ReelNet
import ReelNode

/// The answer of `POST …/events` once all events of the request are in the log. Status 200 says that each of them
/// counts, or counted before. If none had an effect, or the fold does not consume one, the answer is a problem with the
/// acks.
struct PublishAnswer {
    let stream: StreamName
    let acks: [ServerFrame.Acked]
    private let epoch: Epoch
    private let sent: [[UInt8]]
    /// True if the request has a key: then the acks name the copies that count.
    private let hasKey: Bool

    init(_ publish: ClientFrame.Publish, epoch: Epoch, _ acks: [ServerFrame.Acked], hasKey: Bool) {
        (stream, sent) = (publish.stream, publish.events)
        (self.epoch, self.acks, self.hasKey) = (epoch, acks, hasKey)
    }

    /// Returns the members before the outcomes.
    static func opening(_ stream: StreamName, _ epoch: Epoch, _ acks: [ServerFrame.Acked]) -> JSONObjectWriter {
        var writer = JSONObjectWriter()
        writer.member("stream", stream.description)
        writer.member("epoch", epoch.description)
        writer.member("acks", acks) { $0.append(acked: $1) }
        return writer
    }

    /// Returns the answer with the acks only, as the client has asked.
    func response() -> HTTPResponse { .json(Self.opening(stream, epoch, acks).finish()) }

    /// Returns the acks, and the reason why the outcomes are not known.
    func response(without outcomes: Problem) -> HTTPResponse {
        var writer = Self.opening(stream, epoch, acks)
        writer.object("no_outcome") { writer in
            writer.member("code", outcomes.code.rawValue)
            writer.member("detail", outcomes.detail)
        }
        return .json(writer.finish())
    }

    /// Returns the reason why the outcomes are not known, for a request with `outcome=1`.
    func response(refusing problem: Problem) -> HTTPResponse {
        var problem = problem
        problem.epoch = epoch
        problem.acks = json(acks) { $0.append(acked: $1) }
        return problem.response
    }

    /// Returns the refusal of a request that used its key with other content. The event of `ack` contradicts the event
    /// at `seq`.
    func response(conflict ack: ServerFrame.Acked, with seq: Seq) -> HTTPResponse {
        var problem = Problem(.conflict, Self.conflict(ack, seq))
        problem.epoch = epoch
        problem.index = index(of: ack)
        problem.acks = json(acks) { $0.append(acked: $1) }
        return problem.response
    }

    /// Returns the acks with the outcomes of the events.
    func response(_ outcomes: [AckOutcome]) -> HTTPResponse {
        let rows = hasKey ? outcomes.map(\.ofFirstCopy) : outcomes
        if let row = rows.first(where: { $0.failure != nil }), let code = row.failure {
            return response(code, row, rows)
        }
        let rejections = rows.compactMap { row in
            if case .rejected(let code) = row.outcome { (row, code) } else { nil }
        }
        if rejections.count == rows.count, let (row, code) = rejections.first { return response(code, row, rows) }
        var writer = JSONObjectWriter()
        writer.member("stream", stream.description)
        writer.member("epoch", epoch.description)
        writer.objects("acks", rows) { $1.write(to: &$0) }
        if !rejections.isEmpty { writer.member("rejected", rejections.count) }
        return .json(writer.finish())
    }

    private func response(_ code: ErrorCode, _ row: AckOutcome, _ rows: [AckOutcome]) -> HTTPResponse {
        var problem = Problem(code, Self.detail(code, row))
        problem.epoch = epoch
        problem.index = index(of: row.ack)
        problem.acks = json(rows) { bytes, row in bytes.appendObject { row.write(to: &$0) } }
        return problem.response
    }

    private func json<Row>(_ rows: [Row], _ row: (inout [UInt8], Row) -> Void) -> [UInt8] {
        var json: [UInt8] = []
        json.append(array: rows, row)
        return json
    }

    private static func detail(_ code: ErrorCode, _ row: AckOutcome) -> String {
        let event = "op \(row.ack.op) of site \(row.ack.site) at seq \(row.ack.seq)"
        return switch code {
        case .conflict: conflict(row.ack, row.first?.seq ?? .none)
        case .gap: "\(event) was not consumed: an op before it is missing, or the site has ended"
        case .foreign: "\(event) was not consumed: the site is another user's"
        case .stale where row.outcome == .stale:
            "\(event) was not consumed: its site is unknown, and its base is older than the stream's history"
        case .tooManySites: "\(event) was not consumed: the stream has all the sites that it may have"
        default: "\(event) was rejected: \(code.title.lowercased())"
        }
    }

    private static func conflict(_ ack: ServerFrame.Acked, _ seq: Seq) -> String {
        "op \(ack.op) of site \(ack.site) was consumed at seq \(seq) with other content than at seq \(ack.seq)"
    }

    /// Returns the index of the event in its request.
    private func index(of ack: ServerFrame.Acked) -> Int? {
        sent.firstIndex { event in
            event.withUnsafeBytes { EventIntake.author(of: $0).map { $0 == (ack.site, ack.op) } ?? false }
        }
    }
}

extension AckOutcome {
    /// The outcome that the client of a repeated request is told. For a copy with the same content it has the seq and
    /// the outcome of the first copy.
    fileprivate var ofFirstCopy: AckOutcome {
        guard let first, first.isSame else { return self }
        return AckOutcome(ServerFrame.Acked(site: ack.site, op: ack.op, seq: first.seq), first.outcome)
    }
}
