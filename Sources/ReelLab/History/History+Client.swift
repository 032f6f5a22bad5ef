public import ReelCore

/// What a client sees and does.
extension History {
    /// A gateway said welcome: what follows, up to `disconnected`, is of this connection and epoch.
    public func connected(to url: String, _ welcome: ServerFrame.Welcome) {
        write("connect") { line in
            line.member("epoch", welcome.epoch.description)
            line.member("node", welcome.node)
            line.member("partitions", welcome.partitions)
            line.member("url", url)
        }
    }

    /// The connection is gone.
    public func disconnected(code: UInt16, reason: String) {
        write("disconnect") { line in
            line.member("code", code)
            line.member("why", reason)
        }
    }

    /// Events of a site were handed over, those of the first op to the last.
    public func sent(_ stream: StreamName, _ site: Site, ops: ClosedRange<Op>) {
        write("sent", about: [site]) { line in
            line.member("stream", stream.description)
            line.member("site", number(of: site))
            line.member("ops") { $0.append(integers: ops.lowerBound, ops.upperBound) }
        }
    }

    /// Events are durable.
    public func acked(_ ack: ServerFrame.Ack) {
        write("ack", about: ack.acks.map(\.site)) { line in
            line.member("stream", ack.stream.description)
            line.member("epoch", ack.epoch.description)
            line.member("acks", ack.acks) { bytes, acked in
                bytes.append(integers: Int64(number(of: acked.site)), acked.op, acked.seq)
            }
        }
    }

    /// An event was not taken.
    public func nacked(_ nack: ServerFrame.Nack) {
        write("nack", about: [nack.site]) { line in
            line.member("stream", nack.stream.description)
            line.member("site", number(of: nack.site))
            line.member("op", nack.op)
            line.member("code", nack.error.code.rawValue)
            line.member("retry", nack.error.retryMs)
        }
    }

    /// The party publishes no more as this site: what of it was not acked it hands over as another's.
    public func left(_ stream: StreamName, _ site: Site) {
        write("left", about: [site]) { line in
            line.member("stream", stream.description)
            line.member("site", number(of: site))
        }
    }

    /// A subscription stands. `isFiltered`: it asked for some models only, so its frames may leave events out.
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

    /// Events and the range that they prove; `isFetched`: the answer to a fetch.
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

    /// All live subscriptions of the partition are proven up to here.
    public func upto(partition: Int, seq: Seq) {
        write("upto") { line in
            line.member("partition", partition)
            line.member("seq", seq)
        }
    }

    /// A subscription has ended because its reader is too slow.
    public func lagged(_ stream: StreamName, seq: Seq, head: Seq) {
        write("lagged") { line in
            line.member("stream", stream.description)
            line.member("seq", seq)
            line.member("head", head)
        }
    }

    /// A subscription has ended as was asked.
    public func unsubscribed(_ stream: StreamName) {
        write("unsubscribed") { $0.member("stream", stream.description) }
    }

    /// This party took the folded state as of this seq, in place of the events up to it.
    public func loaded(_ stream: StreamName, _ epoch: Epoch, seq: Seq) {
        write("loaded") { line in
            line.member("stream", stream.description)
            line.member("epoch", epoch.description)
            line.member("seq", seq)
        }
    }

    /// This party shows its user all events of the stream up to this seq as there. Without an epoch, and with seq −1,
    /// nobody ever told it anything of the stream.
    public func reached(_ stream: StreamName, _ epoch: Epoch?, seq: Seq) {
        write("reached") { line in
            line.member("stream", stream.description)
            line.member("epoch", epoch?.description)
            line.member("seq", seq)
        }
    }

    /// The party ended as it wanted to; so many of its events were never acked. Nothing follows: what is still said
    /// afterwards is not written.
    public func ended(unacked: Int) {
        writeEnd { $0.member("unacked", unacked) }
    }
}
