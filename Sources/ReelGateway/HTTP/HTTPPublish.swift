import ReelCore
import ReelNet
import ReelNode

/// A publish by HTTP that waits until all of its events are durable, or one is refused.
final class HTTPPublish {
    let number: Int
    private let gateway: GatewayLoop
    private let stream: StreamName
    private let exchange: HTTPExchange
    private let count: Int
    private let then: ([ServerFrame.Acked]) -> Void
    private let untilMs: Int64
    private var acks: [ServerFrame.Acked] = []
    private var refusal: ReelError?

    /// Creates a publish of `count` events. `then` is called once all of them are durable. It gets their acks, in the
    /// order of ops within each site.
    init(
        _ gateway: GatewayLoop,
        _ stream: StreamName,
        _ exchange: HTTPExchange,
        count: Int,
        then: @escaping ([ServerFrame.Acked]) -> Void
    ) {
        self.then = then
        number = gateway.nextNumber()
        self.gateway = gateway
        self.stream = stream
        self.exchange = exchange
        self.count = count
        untilMs = gateway.nowMs + gateway.context.settings.publishMs
    }

    func acked(_ more: [ServerFrame.Acked]) {
        acks += more
        guard acks.count == count else { return }
        var sites: [Site: Int] = [:]
        for ack in acks where sites[ack.site] == nil { sites[ack.site] = sites.count }
        acks.sort { a, b in a.site == b.site ? a.op < b.op : sites[a.site] ?? 0 < sites[b.site] ?? 0 }
        end()
        then(acks)
    }

    /// Called when an event was refused, and so the whole publish. The answer names the event that is to blame.
    func nacked(_ error: ReelError) {
        if refusal == nil || refusal?.index == nil && error.index != nil { refusal = error }
        // The other events of the same publish are refused in this round, too.
        gateway.loop.beforeFlush { [self] in
            guard let refusal, gateway.publishing.requests[number] != nil else { return }
            end()
            exchange.respond(Problem(gateway.failure(refusal, stream)).response)
        }
    }

    func tick(nowMs: Int64) {
        guard nowMs >= untilMs else { return }
        var problem = Problem(
            .logUnavailable,
            "the log has not answered in time: the events may be in it, the same may be sent again"
        )
        problem.retryMs = 1_000
        end()
        exchange.respond(problem.response)
    }

    private func end() {
        gateway.publishing.remove(self)
    }
}

extension Problem {
    /// The HTTP answer for a failure frame.
    init(_ failure: ServerFrame.Failure) {
        self.init(failure.error)
        epoch = failure.epoch
        first = failure.first
        head = failure.head
    }
}
