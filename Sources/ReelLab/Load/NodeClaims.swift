import ReelBase
import ReelCore
import ReelNet

/// The states of the streams at the end of a run, as every folding node reports them. Each node is asked on its own,
/// and its answer is recorded for the checker. So the right answer of one node does not hide the wrong answer of
/// another.
final class NodeClaims {
    private let gateways: LoadGateways
    private let states: FoldedStates
    private let loop: EventLoop

    /// The questions to each node, and the history for the answers.
    private struct Visit {
        let streams: [StreamName]
        let epoch: Epoch
        let history: History
        /// False for gateways that pass on the answers of other nodes, because they have no head of their own.
        var asksForHeads = true
    }

    private struct State {
        let epoch: Epoch
        let seq: Seq
        let digest: String
    }

    private struct Head {
        let epoch: Epoch
        let partition: Int
        let first: Seq
        let head: Seq
    }

    /// The time for which a node that has no answer is asked again.
    private static let patienceMs: Int64 = 2_000

    init(_ gateways: LoadGateways, asking states: FoldedStates, on loop: EventLoop) {
        self.gateways = gateways
        self.states = states
        self.loop = loop
    }

    /// Asks all folding nodes that a gateway names for the states and heads of the streams in this epoch. If none of
    /// them can be reached, the gateways are asked, which pass on the answer of one of them.
    func write(
        _ streams: [StreamName],
        in epoch: Epoch,
        to folder: HistoryFolder,
        then: @escaping (AskedNodes) -> Void
    ) {
        let streams = Array(streams.prefix(FoldedStates.streamsMax))
        var visit = Visit(streams: streams, epoch: epoch, history: folder.history(of: "nodes", .node))
        findNodes(turn: 0, untilMs: MonotonicClock.nowMs() + Self.patienceMs) { [self] nodes in
            ask(nodes, visit) { [self] answered in
                let asked = AskedNodes(known: nodes.count, answered: answered)
                guard answered == 0 else { return then(asked) }
                visit.asksForHeads = false
                ask(gateways.urls, visit) { _ in then(asked) }
            }
        }
    }

    /// Finds the folding nodes: the list of the first gateway that knows some. The list is empty if no gateway does in
    /// time.
    private func findNodes(turn: Int, untilMs: Int64, then: @escaping ([String]) -> Void) {
        let url = gateways.urls[turn % gateways.urls.count]
        states.get("/v1/cluster", of: [url], untilMs: 0, read: Self.nodes) { [self] nodes in
            if let nodes { return then(nodes) }
            guard turn + 1 < gateways.urls.count || MonotonicClock.nowMs() < untilMs else { return then([]) }
            loop.timer(after: .milliseconds(50)) { [self] in
                findNodes(turn: turn + 1, untilMs: untilMs, then: then)
            }
        }
    }

    /// Asks these nodes at once. Calls `then` with the number of nodes that have answered everything.
    private func ask(_ urls: [String], _ visit: Visit, then: @escaping (Int) -> Void) {
        guard !urls.isEmpty else { return then(0) }
        var (open, answered) = (urls.count, 0)
        for url in urls {
            ask(url, visit, visit.streams[...]) { hasAnswered in
                open -= 1
                if hasAnswered { answered += 1 }
                if open == 0 { then(answered) }
            }
        }
    }

    /// Asks for one stream after the other, and ends at the first question without an answer.
    private func ask(
        _ url: String,
        _ visit: Visit,
        _ streams: ArraySlice<StreamName>,
        then: @escaping (Bool) -> Void
    ) {
        guard let stream = streams.first else { return then(true) }
        let untilMs = MonotonicClock.nowMs() + Self.patienceMs
        states.get("/v1/streams/\(stream)/snapshot", of: [url], untilMs: untilMs) { body in
            Self.state(body).flatMap { $0.epoch == visit.epoch ? $0 : nil }
        } then: { [self] (state: State?) in
            guard let state else { return then(false) }
            if state.seq > .none {
                visit.history.state(stream, state.epoch, seq: state.seq, digest: state.digest, of: url)
            }
            guard visit.asksForHeads else { return ask(url, visit, streams.dropFirst(), then: then) }
            states.get("/v1/streams/\(stream)/head", of: [url], untilMs: untilMs) { body in
                Self.head(body).flatMap { $0.epoch == visit.epoch ? $0 : nil }
            } then: { [self] (head: Head?) in
                guard let head else { return then(false) }
                visit.history.head(
                    partition: head.partition,
                    head.epoch,
                    first: head.first,
                    head: head.head,
                    of: url
                )
                ask(url, visit, streams.dropFirst(), then: then)
            }
        }
    }

    // MARK: Answers

    /// Returns the URLs of the nodes that fold; nil if there are none.
    private static func nodes(_ body: [UInt8]) -> [String]? {
        var urls: [String] = []
        FoldedStates.members(body[...]) { (reader, key) throws(ReelError) in
            guard key.string == "nodes" else { return try reader.skip() }
            try reader.array { (reader) throws(ReelError) in
                var role = ""
                var url = ""
                var hasLeft = false
                try reader.object { (reader, key) throws(ReelError) in
                    switch key.raw {
                    case "role": role = try reader.string()
                    case "url": url = try reader.string()
                    case "left": hasLeft = try reader.boolean()
                    default: try reader.skip()
                    }
                }
                if !hasLeft, role != "gateway", !url.isEmpty, !urls.contains(url) { urls.append(url) }
            }
        }
        return urls.isEmpty ? nil : urls
    }

    /// Reads the first and the last line of a snapshot.
    private static func state(_ body: [UInt8]) -> State? {
        let lines = body.last == 0x0A ? body.dropLast() : body[...]
        let last = lines[(lines.lastIndex(of: 0x0A).map { $0 + 1 } ?? lines.startIndex)...]
        var digest: String?
        FoldedStates.members(last) { (reader, key) throws(ReelError) in
            switch key.raw {
            case "digest": digest = try reader.string()
            default: try reader.skip()
            }
        }
        guard let (epoch, seq) = FoldedStates.position(body), let digest else { return nil }
        return State(epoch: epoch, seq: seq, digest: digest)
    }

    private static func head(_ body: [UInt8]) -> Head? {
        var epoch: Epoch?
        var partition: Int64?
        var first: Seq?
        var head: Seq?
        FoldedStates.members(body[...]) { (reader, key) throws(ReelError) in
            switch key.raw {
            case "epoch": epoch = Epoch(try reader.string())
            case "partition": partition = try reader.integer()
            case "first": first = try reader.integer(from: -1)
            case "head": head = try reader.integer(from: -1)
            default: try reader.skip()
            }
        }
        guard let epoch, let partition, let first, let head else { return nil }
        return Head(epoch: epoch, partition: Int(partition), first: first, head: head)
    }
}

/// The number of nodes that were asked for their folded states at the end of a run.
public struct AskedNodes: Sendable {
    /// Nodes that fold, as a gateway names them.
    public let known: Int
    /// Those of the known nodes that have answered everything.
    public let answered: Int
}
