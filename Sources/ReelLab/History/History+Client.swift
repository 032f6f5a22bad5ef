public import ReelCore

/// What a client sees and does.
extension History {
    /// A gateway said welcome: what follows, up to `disconnected`, is of this connection and epoch.
    public func connected(to url: String, _ welcome: ServerFrame.Welcome) {
        write("connect") { line in
            line.append(#","epoch":""#)
            line.append(contentsOf: welcome.epoch.description.utf8)
            line.append(#"","node":"#)
            line.append(quoted: welcome.node)
            line.append(#","partitions":"#)
            line.append(integer: welcome.partitions)
            line.append(#","url":"#)
            line.append(quoted: url)
        }
    }

    /// The connection is gone.
    public func disconnected(code: UInt16, reason: String) {
        write("disconnect") { line in
            line.append(#","code":"#)
            line.append(integer: code)
            line.append(#","why":"#)
            line.append(quoted: reason)
        }
    }

    /// Events of a site were handed over, those of the first op to the last.
    public func sent(_ stream: StreamName, _ site: Site, ops: ClosedRange<Op>) {
        write("sent", about: [site]) { line in
            append(stream, &line)
            append(site, &line)
            line.append(#","ops":["#)
            line.append(integer: ops.lowerBound)
            line.append(",")
            line.append(integer: ops.upperBound)
            line.append("]")
        }
    }

    /// Events are durable.
    public func acked(_ ack: ServerFrame.Ack) {
        write("ack", about: ack.acks.map(\.site)) { line in
            append(ack.stream, &line)
            append(ack.epoch, &line)
            line.append(#","acks":["#)
            for (index, acked) in ack.acks.enumerated() {
                if index > 0 { line.append(",") }
                line.append("[")
                line.append(integer: number(of: acked.site))
                line.append(",")
                line.append(integer: acked.op)
                line.append(",")
                line.append(integer: acked.seq)
                line.append("]")
            }
            line.append("]")
        }
    }

    /// An event was not taken.
    public func nacked(_ nack: ServerFrame.Nack) {
        write("nack", about: [nack.site]) { line in
            append(nack.stream, &line)
            append(nack.site, &line)
            line.append(#","op":"#)
            line.append(integer: nack.op)
            line.append(#","code":"#)
            line.append(quoted: nack.error.code.rawValue)
            if let retry = nack.error.retryMs {
                line.append(#","retry":"#)
                line.append(integer: retry)
            }
        }
    }

    /// A subscription stands. `isFiltered`: it asked for some models only, so its frames may leave events out.
    public func subscribed(_ subscribed: ServerFrame.Subscribed, isFiltered: Bool = false) {
        write("subscribed") { line in
            append(subscribed.stream, &line)
            append(subscribed.epoch, &line)
            line.append(#","partition":"#)
            line.append(integer: subscribed.partition)
            line.append(#","first":"#)
            line.append(integer: subscribed.first)
            line.append(#","head":"#)
            line.append(integer: subscribed.head)
            line.append(#","after":"#)
            line.append(integer: subscribed.after)
            if isFiltered { line.append(#","filtered":true"#) }
        }
    }

    /// Events and the range that they prove; `isFetched`: the answer to a fetch.
    public func received(_ frame: EventsProof, isFetched: Bool) {
        write("events", about: frame.sites) { line in
            append(frame.stream, &line)
            line.append(#","from":"#)
            line.append(integer: frame.from)
            line.append(#","to":"#)
            line.append(integer: frame.to)
            if isFetched { line.append(#","fetched":true"#) }
            line.append(#","events":["#)
            for (index, event) in frame.events.enumerated() {
                if index > 0 { line.append(",") }
                line.append("[")
                line.append(integer: event.seq)
                line.append(",")
                line.append(integer: event.site.map(number) ?? -1)
                line.append(",")
                line.append(integer: event.op)
                line.append(#",""#)
                line.append(contentsOf: Hex64.text(event.hash).utf8)
                line.append(#""]"#)
            }
            line.append("]")
        }
    }

    /// All live subscriptions of the partition are proven up to here.
    public func upto(partition: Int, seq: Seq) {
        write("upto") { line in
            line.append(#","partition":"#)
            line.append(integer: partition)
            line.append(#","seq":"#)
            line.append(integer: seq)
        }
    }

    /// A subscription has ended because its reader is too slow.
    public func lagged(_ stream: StreamName, seq: Seq, head: Seq) {
        write("lagged") { line in
            append(stream, &line)
            line.append(#","seq":"#)
            line.append(integer: seq)
            line.append(#","head":"#)
            line.append(integer: head)
        }
    }

    /// A subscription has ended as was asked.
    public func unsubscribed(_ stream: StreamName) {
        write("unsubscribed") { append(stream, &$0) }
    }

    /// This party took the folded state as of this seq, in place of the events up to it.
    public func loaded(_ stream: StreamName, _ epoch: Epoch, seq: Seq) {
        write("loaded") { line in
            append(stream, &line)
            append(epoch, &line)
            line.append(#","seq":"#)
            line.append(integer: seq)
        }
    }

    /// This party shows its user all events of the stream up to this seq as there.
    public func reached(_ stream: StreamName, _ epoch: Epoch, seq: Seq) {
        write("reached") { line in
            append(stream, &line)
            append(epoch, &line)
            line.append(#","seq":"#)
            line.append(integer: seq)
        }
    }

    /// The party ended as it wanted to; so many of its events were handed over and never acked. Nothing follows.
    public func ended(unacked: Int) {
        write("end") { line in
            line.append(#","unacked":"#)
            line.append(integer: unacked)
        }
    }

    func append(_ stream: StreamName, _ line: inout [UInt8]) {
        line.append(#","stream":""#)
        line.append(contentsOf: stream.description.utf8)
        line.append(#"""#)
    }

    func append(_ epoch: Epoch, _ line: inout [UInt8]) {
        line.append(#","epoch":""#)
        line.append(contentsOf: epoch.description.utf8)
        line.append(#"""#)
    }

    private func append(_ site: Site, _ line: inout [UInt8]) {
        line.append(#","site":"#)
        line.append(integer: number(of: site))
    }
}
