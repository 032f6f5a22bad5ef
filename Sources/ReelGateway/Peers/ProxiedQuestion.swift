import ReelCore
import ReelLog
import ReelNet
import ReelNode

/// One forwarded question. It does what `HedgedQuestion` decides. On its loop only.
final class ProxiedQuestion {
    /// The answer of a node that cannot answer now.
    private struct Refusal {
        var head: PeerAnswer
        var body: [UInt8] = []
    }

    private let proxy: SnapshotProxy
    private let question: any ProxiedRequest
    private let partition: Int
    private let nodes: [NodeAnnouncement]
    private let exchange: HTTPExchange
    private let otherwise: (() -> Void)?
    private var hedged: HedgedQuestion
    private var calls: [Int: HTTPCall] = [:]
    private var refusals: [Int: Refusal] = [:]
    private var timer: LoopTimer?
    /// For each request the timer of the time in which its node must begin to answer.
    private var deadlines: [Int: LoopTimer] = [:]
    /// The answer that is passed on, and the index of its node; nil: no node has begun to answer.
    private var passed: (index: Int, answer: ProxiedResponse)?

    init(
        _ question: any ProxiedRequest,
        in partition: Int,
        to nodes: [NodeAnnouncement],
        _ exchange: HTTPExchange,
        by proxy: SnapshotProxy,
        otherwise: (() -> Void)?
    ) {
        self.otherwise = otherwise
        self.proxy = proxy
        self.question = question
        self.partition = partition
        self.nodes = nodes
        self.exchange = exchange
        hedged = HedgedQuestion(nodes: nodes.count, delayMs: proxy.hedgeMs)
    }

    private var loop: EventLoop { proxy.client.loop }

    func start() { perform(hedged.start(nowMs: loop.nowMs)) }

    private func perform(_ actions: [HedgedQuestion.Action]) {
        for action in actions {
            switch action {
            case .ask(let index): ask(index)
            case .wait: wait()
            case .cancel(let index, let wasSilent):
                if wasSilent {
                    proxy.isSilent(
                        nodes[index],
                        "silent for \(proxy.hedgeMs) ms, and another node answered at once"
                    )
                }
                drop(index)
            case .pass(let index):
                stopWaiting()
                proxy.answers(nodes[index], partition)
                deadlines.removeValue(forKey: index)?.cancel()
                let answer = ProxiedResponse(exchange, preamble: question.preamble)
                answer.call = calls.removeValue(forKey: index)
                answer.call?.allowSilence(of: proxy.timeout)
                answer.overflowed = { [proxy, node = nodes[index]] in
                    proxy.doubts(node, "it sends more than a snapshot node sends")
                }
                passed = (index, answer)
            case .refuse(let index):
                stopWaiting()
                refuse(with: index.flatMap { refusals[$0] })
            }
        }
    }

    private func wait() {
        stopWaiting()
        timer = loop.timer(after: .milliseconds(proxy.hedgeMs)) { [self] in
            timer = nil
            guard exchange.isOpen else { return giveUp() }
            let mayHedge = hedged.hasNext && proxy.mayHedge(hedged.asked.map { nodes[$0] })
            perform(hedged.delayPassed(mayHedge: mayHedge, nowMs: loop.nowMs))
        }
    }

    private func stopWaiting() {
        timer?.cancel()
        timer = nil
    }

    /// Ends the question, because its client is gone.
    private func giveUp() {
        stopWaiting()
        perform(hedged.giveUp())
    }

    private func ask(_ index: Int) {
        guard exchange.isOpen else { return giveUp() }
        let sent = exchange.request
        let asked = proxy.client.request(
            to: nodes[index],
            authorization: sent.headers["authorization"],
            timeout: hedged.hasNext ? proxy.headTimeout : proxy.timeout,
            question.clientRequest(to:)
        )
        guard var request = asked else { return perform(hedged.failed(index, nowMs: loop.nowMs)) }
        if sent.method == "HEAD" { request.method = "HEAD" }
        if let client = exchange.client { request.headers.add("forwarded", client.forwardedFor) }
        // An answer after a preamble is compressed here, if at all.
        if question.preamble.isEmpty {
            if let tag = sent.headers["if-none-match"] { request.headers.add("if-none-match", tag) }
            if sent.acceptsGzip { request.headers.add("accept-encoding", "gzip") }
        }
        // A node that sends little at a time is never silent. Connecting and answering may take the timeout each.
        deadlines[index] = loop.timer(after: request.timeout * 2) { [self] in
            deadlines[index] = nil
            guard calls[index] != nil else { return }
            proxy.isSilent(nodes[index], "it has not begun to answer in time")
            fail(index)
        }
        calls[index] = proxy.client.http.send(request) { [self] event in take(event, from: index) }
    }

    private func take(_ event: HTTPClient.Event, from index: Int) {
        if let passed { return passed.index == index ? passed.answer.take(event) : () }
        guard exchange.isOpen else { return giveUp() }
        switch event {
        case .head(let head): take(head, from: index)
        case .data(let bytes):
            guard let refusal = refusals[index] else { return }
            guard refusal.body.count + bytes.count <= refusal.head.bytesMax else {
                return doubt(index, "a refusal of more than \(refusal.head.bytesMax) bytes")
            }
            refusals[index]?.body += bytes
        case .end:
            calls[index] = nil
            deadlines.removeValue(forKey: index)?.cancel()
            guard let refusal = refusals[index] else { return }
            let said = PeerRefusal(refusal.body)
            // If the epoch has changed, another node says the same. A loss concerns this node alone.
            if refusal.head.status == 409, said.code?.isLoss != true {
                refusals[index] = nil
                perform(hedged.answered(index, nowMs: loop.nowMs))
                passed?.answer.begin(refusal.head)
                passed?.answer.take(.data(refusal.body))
                passed?.answer.take(.end)
                return
            }
            proxy.refuses(nodes[index], partition, status: refusal.head.status)
            perform(hedged.refused(index, seq: said.seq, nowMs: loop.nowMs))
        case .failed(let error):
            // The request was cancelled.
            guard hedged.asked.contains(index) else { return }
            if error.code == .timedOut {
                proxy.isSilent(nodes[index], error.message)
            } else {
                proxy.warn("a snapshot node does not answer", nodes[index], error.message)
            }
            fail(index)
        }
    }

    private func take(_ head: HTTPResponseHead, from index: Int) {
        let answer: PeerAnswer
        do throws(PeerAnswer.Fault) {
            answer = try PeerAnswer(head, to: question, of: exchange.request)
        } catch {
            return doubt(index, error.detail)
        }
        // The answer to HEAD has no body that could report a loss.
        if answer.isRefusal, answer.status != 409 || exchange.request.method != "HEAD" {
            refusals[index] = Refusal(head: answer)
            return
        }
        perform(hedged.answered(index, nowMs: loop.nowMs))
        passed?.answer.begin(answer)
    }

    /// Called when the node's answer is not one that a snapshot node sends.
    private func doubt(_ index: Int, _ detail: String) {
        proxy.doubts(nodes[index], detail)
        fail(index)
    }

    /// Counts the node as one that does not answer, and asks the next one.
    private func fail(_ index: Int) {
        refusals[index] = nil
        perform(hedged.failed(index, nowMs: loop.nowMs))
        drop(index)
    }

    /// Ends the request to a node.
    private func drop(_ index: Int) {
        deadlines.removeValue(forKey: index)?.cancel()
        calls.removeValue(forKey: index)?.cancel()
    }

    private func refuse(with refusal: Refusal?) {
        guard exchange.isOpen else { return }
        if let otherwise { return otherwise() }
        guard let refusal else {
            var problem = Problem(.nodeBehind, "found no snapshot node that answers")
            problem.retryMs = 1_000
            return exchange.respond(problem.response)
        }
        let answer = ProxiedResponse(exchange, preamble: [])
        answer.begin(refusal.head)
        answer.take(.data(refusal.body))
        answer.take(.end)
    }
}
