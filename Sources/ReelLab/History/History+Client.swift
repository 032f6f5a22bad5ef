public import ReelCore

/// The lines of a client.
extension History {
    /// Notes that a gateway sent `welcome`. The lines up to `disconnected` are of this connection and epoch.
    public func connected(to url: String, _ welcome: ServerFrame.Welcome) {
        write("connect") { line in
            line.member("epoch", welcome.epoch.description)
            line.member("node", welcome.node)
            line.member("partitions", welcome.partitions)
            line.member("url", url)
        }
    }

    /// Notes that the connection has ended.
    public func disconnected(code: UInt16, reason: String) {
        write("disconnect") { line in
            line.member("code", code)
            line.member("why", reason)
        }
    }

    /// Notes that events of a site were handed over.
    ///
    /// - Parameters:
    ///   - stream: the stream of the events.
    ///   - site: the site of the events.
    ///   - ops: the ops of the events, from the first to the last.
    public func sent(_ stream: StreamName, _ site: Site, ops: ClosedRange<Op>) {
        write("sent", about: [site]) { line in
            line.member("stream", stream.description)
            line.member("site", number(of: site))
            line.member("ops") { $0.append(integers: ops.lowerBound, ops.upperBound) }
        }
    }

    /// Notes that events are durable.
    public func acked(_ ack: ServerFrame.Ack) {
        write("ack", about: ack.acks.map(\.site)) { line in
            line.member("stream", ack.stream.description)
            line.member("epoch", ack.epoch.description)
            line.member("acks", ack.acks) { bytes, acked in
                bytes.append(integers: Int64(number(of: acked.site)), acked.op, acked.seq)
            }
        }
    }

    /// Notes that an event was not accepted.
    public func nacked(_ nack: ServerFrame.Nack) {
        write("nack", about: [nack.site]) { line in
            line.member("stream", nack.stream.description)
            line.member("site", number(of: nack.site))
            line.member("op", nack.op)
            line.member("code", nack.error.code.rawValue)
            line.member("retry", nack.error.retryMs)
        }
    }

    /// Notes that the client publishes no more as this site. It hands over its unacked events under another site.
    public func left(_ stream: StreamName, _ site: Site) {
        write("left", about: [site]) { line in
            line.member("stream", stream.description)
            line.member("site", number(of: site))
        }
    }

    /// Notes that a subscription has begun. `isFiltered`: true if it is for some models only, so that its frames may
    /// omit events.
    public func subscribed(_ subscribed: ServerFrame.Subscribed, isFiltered: Bool = false) {
        write("subscribed") { line in
            line.member("stream", subscribed.stream.description)
            line.member("epoch", subscribed.epoch.description)
            line.member("partition", subscribed.partition)
            line.member("first", subscribed.first)
            line.member("head", subscribed.head)
            line.member("after", subscribed.after)
            if isFiltered { line.member("filtered", true) }
        }
    }

    /// Notes events and the range that they prove. `isFetched`: true for the answer to a fetch.
    public func received(_ frame: EventsProof, isFetched: Bool) {
        write("events", about: frame.sites) { line in
            line.member("stream", frame.stream.description)
            line.member("from", frame.from)
            line.member("to", frame.to)
            if isFetched { line.member("fetched", true) }
            line.member("events", frame.events) { bytes, event in
                bytes.append("[")
                bytes.append(integer: event.seq)
                bytes.append(",")
                bytes.append(integer: event.site.map(number) ?? -1)
                bytes.append(",")
                bytes.append(integer: event.op)
                bytes.append(#",""#)
                bytes.append(contentsOf: Hex64.text(event.hash).utf8)
                bytes.append(#""]"#)
            }
        }
    }

    /// Notes that all live subscriptions of the partition are proven up to `seq`.
    public func upto(partition: Int, seq: Seq) {
        write("upto") { line in
            line.member("partition", partition)
            line.member("seq", seq)
        }
    }

    /// Notes that a subscription has ended because its reader is too slow.
    ///
    /// - Parameters:
    ///   - stream: the stream of the subscription.
    ///   - seq: the last seq that the gateway has proven to the client.
    ///   - head: the last seq of the partition.
    public func lagged(_ stream: StreamName, seq: Seq, head: Seq) {
        write("lagged") { line in
            line.member("stream", stream.description)
            line.member("seq", seq)
            line.member("head", head)
        }
    }

    /// Notes that a subscription has ended as requested.
    public func unsubscribed(_ stream: StreamName) {
        write("unsubscribed") { $0.member("stream", stream.description) }
    }

    /// Notes that this client has loaded the folded state of a stream, in place of the events up to `seq`.
    ///
    /// - Parameters:
    ///   - stream: the stream.
    ///   - epoch: the epoch of the log that `seq` belongs to.
    ///   - seq: the seq as of which the state is folded.
    public func loaded(_ stream: StreamName, _ epoch: Epoch, seq: Seq) {
        write("loaded") { line in
            line.member("stream", stream.description)
            line.member("epoch", epoch.description)
            line.member("seq", seq)
        }
    }

    /// Notes that this client shows its user all events of a stream up to `seq`.
    ///
    /// - Parameters:
    ///   - stream: the stream.
    ///   - epoch: the epoch of the log that `seq` belongs to; nil: the client was never told anything of the stream.
    ///   - seq: the last seq that is shown; −1 without an epoch.
    public func reached(_ stream: StreamName, _ epoch: Epoch?, seq: Seq) {
        write("reached") { line in
            line.member("stream", stream.description)
            line.member("epoch", epoch?.description)
            line.member("seq", seq)
        }
    }

    /// Notes that the client ended as planned. `unacked`: the number of its events that were never acked. Later lines
    /// are not written.
    public func ended(unacked: Int) {
        writeEnd { $0.member("unacked", unacked) }
    }
}
