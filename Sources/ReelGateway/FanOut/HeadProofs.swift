import ReelCore
import ReelNet
import ReelNode

/// The heads and the state of the log that the clients of one loop have been told of. It proves heads to clients whose
/// streams have no new events.
struct HeadProofs<Client: Subscriber> {
    typealias Entry = Subscription<Client>

    /// The proofs that the clients of a slot have got for a partition.
    private struct Proof: Equatable {
        /// The head up to which every live subscription has been proven; nil: some subscription is not proven to the
        /// head.
        var head: Seq?
        /// The state of the log.
        var log: LogState
        /// The clients that could not be told of the log's state.
        var untold: Set<Int> = []
    }

    /// For each slot and partition what all its clients have been told.
    private var proofs: [[Proof]]
    /// The state of the log, which `upto` frames carry.
    var log = LogState.ok

    /// Creates the proofs of a log with `partitions` partitions.
    init(partitions: Int) {
        let none = [Proof](repeating: Proof(head: nil, log: .ok), count: partitions)
        proofs = [[Proof]](repeating: none, count: Subscriptions<Client>.slots.count)
    }

    /// Proves the head of a partition to all clients of some slots that have not been told of it, or of the log's
    /// state. Called about once a second. If `send` fails because a client reads too slowly, the head stays unproven
    /// for it.
    mutating func tell(
        _ subscriptions: Subscriptions<Client>,
        slots: Range<Int>,
        partition: Int,
        head: Seq,
        send: (Client, WebSocketFrame) -> Bool
    ) {
        let now = Proof(head: head, log: log)
        guard slots.contains(where: { proofs[$0][partition] != now }) else { return }
        let frame = upto(partition, head)
        for slot in slots where proofs[slot][partition] != now {
            let before = proofs[slot][partition]
            proofs[slot][partition] = now
            for entries in subscriptions.clients[slot].values {
                guard let client = entries.first?.client else { continue }
                var (least, proof, isNew) = (head, head, false)
                for entry in entries where entry.partition == partition {
                    isNew = before.log != log || before.untold.contains(client.number)
                    if entry.isLive { least = min(least, entry.proven) } else { proof = min(proof, entry.proven) }
                }
                guard least < head || isNew else { continue }
                if proof < head { proofs[slot][partition].head = nil }
                if proof <= least, !isNew, proveApart(entries, partition, head, send) { continue }
                guard proof > least || isNew else { continue }
                if send(client, proof == head ? frame : upto(partition, proof)) {
                    prove(entries, partition, proof)
                } else {
                    proofs[slot][partition].head = nil
                    if isNew { proofs[slot][partition].untold.insert(client.number) }
                }
            }
        }
    }

    /// Proves the head to each live subscription of a client by an `events` frame of its own. An `upto` frame would
    /// also prove it for a subscription that waits for outcomes. Returns false if no subscription waits for outcomes.
    private func proveApart(
        _ entries: [Entry],
        _ partition: Int,
        _ head: Seq,
        _ send: (Client, WebSocketFrame) -> Bool
    ) -> Bool {
        let those = entries.filter { $0.partition == partition }
        guard those.contains(where: { $0.hasOutcomes && $0.proven < head }) else { return false }
        for entry in those where entry.isLive && entry.proven < head {
            let proof = EventRange(from: entry.proven + 1, to: head).frame(stream: entry.stream)
            if send(entry.client, proof) { entry.sent(to: head) }
        }
        return true
    }

    /// Sends at once what proves the head to a subscription that has caught up to it. Call it when the subscription
    /// has just become live.
    ///
    /// - Parameters:
    ///   - entry: The subscription.
    ///   - entries: All subscriptions of its client.
    ///   - head: The partition's head.
    ///   - gathers: True if some events before the head have not been delivered to live subscriptions yet.
    ///   - send: Sends a frame to a client.
    func caughtUp(
        _ entry: Entry,
        among entries: [Entry],
        head: Seq,
        gathers: Bool,
        send: (Client, WebSocketFrame) -> Void
    ) {
        let others = entries.lazy.filter { $0 !== entry && $0.partition == entry.partition }
        // `upto` also proves the head for the client's other streams in the partition. They must not lack an event.
        if !gathers || !others.contains(where: \.isLive), others.allSatisfy({ $0.isLive || $0.proven >= head }) {
            send(entry.client, upto(entry.partition, head))
            prove(entries, entry.partition, head)
        } else if entry.proven < head {
            // A frame of this stream proves the head for it alone.
            let proof = EventRange(from: entry.proven + 1, to: head).frame(stream: entry.stream)
            send(entry.client, proof)
            entry.sent(to: head)
        }
    }

    private func prove(_ entries: [Entry], _ partition: Int, _ seq: Seq) {
        for entry in entries where entry.partition == partition && entry.isLive { entry.sent(to: seq) }
    }

    /// Returns the frame that proves a seq for all subscriptions of a client in a partition.
    private func upto(_ partition: Int, _ seq: Seq) -> WebSocketFrame {
        var frame = Array(#"{"t":"upto","partition":"#.utf8)
        frame.append(integer: partition)
        frame.append(#","seq":"#)
        frame.append(integer: seq)
        if log != .ok {
            frame.append(#","log":"#)
            frame.append(quoted: log.rawValue)
        }
        frame.append(UInt8(ascii: "}"))
        return WebSocketFrame.text(frame)
    }
}
