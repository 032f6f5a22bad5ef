extension ServerFrame {
    /// Returns the bytes of the frame.
    public func encoded() -> [UInt8] {
        var writer = JSONObjectWriter()
        switch body {
        case .welcome(let welcome):
            writer.member("t", "welcome")
            writer.member("node", welcome.node)
            writer.member("epoch", welcome.epoch.description)
            writer.member("log", welcome.log)
            writer.member("number", welcome.number)
            writer.member("deployment", welcome.deployment?.description)
            writer.member("partitions", welcome.partitions)
            writer.member("limits", raw: welcome.limits.encoded())
            writer.member("ping_s", welcome.pingS)
            writer.member("token_s", welcome.tokenS)
            if !welcome.nodes.isEmpty { writer.member("nodes", welcome.nodes) { $0.append(quoted: $1) } }
        case .subscribed(let subscribed):
            writer.member("t", "subscribed")
            writer.member("stream", subscribed.stream.description)
            writer.member("epoch", subscribed.epoch.description)
            writer.member("partition", subscribed.partition)
            writer.member("first", subscribed.first)
            writer.member("head", subscribed.head)
            writer.member("after", subscribed.after)
        case .events(let events):
            writer.member("t", "events")
            writer.member("stream", events.stream.description)
            writer.member("from", events.from)
            writer.member("to", events.to)
            writer.member("events", events.events) { bytes, event in
                event.value.withUnsafeBytes { DeliveredEvent.write(seq: event.seq, value: $0, to: &bytes) }
            }
        case .upto(let partition, let seq):
            writer.member("t", "upto")
            writer.member("partition", partition)
            writer.member("seq", seq)
        case .unsubscribed(let stream):
            writer.member("t", "unsubscribed")
            writer.member("stream", stream.description)
        case .ack(let ack):
            writer.member("t", "ack")
            writer.member("stream", ack.stream.description)
            writer.member("epoch", ack.epoch.description)
            writer.member("acks", ack.acks) { $0.append(acked: $1) }
        case .nack(let nack):
            writer.member("t", "nack")
            writer.member("stream", nack.stream.description)
            writer.member("site", nack.site.description)
            writer.member("op", nack.op)
            writer.member("code", nack.error.code.rawValue)
            writer.member("message", nack.error.message)
            writer.member("retry", nack.error.retryMs)
        case .lagged(let stream, let seq, let head):
            writer.member("t", "lagged")
            writer.member("stream", stream.description)
            writer.member("seq", seq)
            writer.member("head", head)
        case .goaway(let afterMs, let nodes):
            writer.member("t", "goaway")
            writer.member("after_ms", afterMs)
            writer.member("nodes", nodes) { $0.append(quoted: $1) }
        case .nodes(let nodes):
            writer.member("t", "nodes")
            writer.member("nodes", nodes) { $0.append(quoted: $1) }
        case .error(let failure):
            writer.member("t", "error")
            writer.member("code", failure.error.code.rawValue)
            writer.member("message", failure.error.message)
            writer.member("stream", failure.stream?.description)
            writer.member("index", failure.error.index)
            writer.member("retry_ms", failure.error.retryMs)
            writer.member("epoch", failure.epoch?.description)
            writer.member("first", failure.first)
            writer.member("head", failure.head)
        }
        writer.member("ref", raw: ref)
        return writer.finish()
    }
}

extension ServerFrame.Limits {
    fileprivate func encoded() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.member("frame", frame)
        writer.member("event", event)
        writer.member("batch", batch)
        writer.member("subscriptions", subscriptions)
        writer.member("subscribe", subscribe)
        writer.member("fetch", fetch)
        return writer.finish()
    }
}

extension [UInt8] {
    /// Appends `{"site":…,"op":…,"seq":…}`.
    package mutating func append(acked: ServerFrame.Acked) {
        appendObject { $0.members(of: acked) }
    }
}

extension JSONObjectWriter {
    /// Writes the members `site`, `op` and `seq`.
    package mutating func members(of acked: ServerFrame.Acked) {
        member("site") { $0.append(quoted: acked.site) }
        member("op", acked.op)
        member("seq", acked.seq)
    }
}
