import ReelCore
import ReelLog
import ReelNet
import ReelNode

/// Stands for "no head": it is lower than every seq that a client can have been told, −1 included.
private let unprovenHead: Seq = -2
/// The maximum size in bytes of an `events` frame without its events and the name of its stream.
private let envelopeBytesMax = 192

/// A client's subscription to one stream, with its position there.
final class Subscription<Client: Subscriber> {
    let client: Client
    let stream: StreamName
    let partition: Int
    /// Filter and outcomes; nil for most subscriptions, which keeps them small.
    private let options: Options?
    /// The last seq that was proven to the client.
    fileprivate(set) var proven: Seq
    /// The next seq to look at. It is greater than `proven + 1` after a range without events.
    var next: Seq
    /// True if the subscription gets the tail's batches. Until then it catches up.
    fileprivate(set) var isLive = false
    /// True once the subscription has ended, or a newer one has replaced it.
    fileprivate(set) var isOver = false
    /// True while the subscription waits for the log, for outcomes, or for its client to read.
    var isReading = false
    /// True if the subscription reads once another read of its client has ended.
    var awaitsRead = false
    /// The index of the subscription among the live ones of its stream.
    fileprivate var index: Int32 = 0

    fileprivate init(
        client: Client,
        stream: StreamName,
        partition: Int,
        after: Seq,
        options: Options?
    ) {
        self.client = client
        self.options = options
        self.stream = stream
        self.partition = partition
        proven = after
        next = after + 1
    }

    /// The filter for events; nil: all events.
    var filter: EventFilter? { options?.filter }
    /// True if each event is sent with its outcome. Such a subscription never becomes live; `OutcomeFollower` reads for
    /// it.
    var hasOutcomes: Bool { options?.hasOutcomes == true }

    /// True if the head has to be proven although there is no event to send. Only for subscriptions with outcomes.
    var owesProof: Bool {
        get { options?.owesProof == true }
        set { options?.owesProof = newValue }
    }

    /// Sets the function to call once the subscription ends. Only for subscriptions with outcomes.
    func whenOver(_ body: @escaping () -> Void) {
        options?.over = body
    }

    fileprivate func finish() {
        isOver = true
        options?.over?()
        options?.over = nil
    }

    /// Records that all events up to `seq` were sent.
    func sent(to seq: Seq) {
        proven = max(proven, seq)
        next = max(next, seq + 1)
    }
}

/// The options of a subscription that is not to all events of a stream without outcomes.
private final class Options {
    let filter: EventFilter?
    let hasOutcomes: Bool
    var owesProof = true
    var over: (() -> Void)?

    /// Returns nil if there is no filter and outcomes are not wanted.
    init?(_ filter: EventFilter?, hasOutcomes: Bool) {
        guard filter != nil || hasOutcomes else { return nil }
        self.filter = filter
        self.hasOutcomes = hasOutcomes
    }
}

/// A client that subscribes.
protocol Subscriber: AnyObject {
    /// A number that is unique on its loop. It is not the object's address, so that a simulated run is the same each
    /// time.
    var number: Int { get }
    /// The bytes of the filters of all its subscriptions. `Subscriptions` keeps the sum.
    var filterBytes: Int { get set }
}

/// The subscriptions on one loop. A frame is made once for all clients with the same position.
struct Subscriptions<Client: Subscriber> {
    typealias Entry = Subscription<Client>

    /// The slots that divide the clients, so that not all of them have to be told of a head at once.
    static var slots: Range<Int> { 0..<32 }

    /// The live subscriptions of each stream.
    private var live: [StreamName: [Entry]] = [:]
    /// The subscriptions by slot and client number. They are in arrays, because most clients have few.
    private var clients: [[Int: [Entry]]]
    private(set) var count = 0
    /// The state of the log, which `upto` frames carry.
    var log = LogState.ok
    /// For each slot and partition what all its clients have been told.
    private var settled: [[Standing]]
    private let frameLimit: Int

    private struct Standing: Equatable {
        /// The head up to which every live subscription has been proven.
        var head: Seq
        var log: LogState
        /// The clients that could not be told of the log's state.
        var untold: Set<Int> = []
    }

    /// Creates subscriptions for a log with `partitions` partitions. A frame has at most `frameLimit` bytes, unless a
    /// single event is larger.
    init(partitions: Int, frameLimit: Int) {
        let none = [Standing](repeating: Standing(head: unprovenHead, log: .ok), count: partitions)
        settled = [[Standing]](repeating: none, count: Self.slots.count)
        clients = [[Int: [Entry]]](repeating: [:], count: Self.slots.count)
        self.frameLimit = frameLimit
    }

    /// Returns how many bytes of events fit into a frame of the stream.
    func bodyLimit(_ stream: StreamName) -> Int {
        max(1, frameLimit - envelopeBytesMax - stream.description.utf8.count)
    }

    /// Returns the slot of a client by Fibonacci hashing: numbers in sequence, or with any other regular distance, get
    /// different slots.
    private static func slot(_ client: Client) -> Int {
        Int((UInt64(truncatingIfNeeded: client.number) &* 0x9e37_79b9_7f4a_7c15) >> 59)
    }

    // MARK: Adding and removing

    /// Returns the client's subscription to the stream; nil: it has none.
    func entry(_ client: Client, _ stream: StreamName) -> Entry? {
        clients[Self.slot(client)][client.number]?.first { $0.stream == stream }
    }

    /// Returns all subscriptions of a client.
    func all(of client: Client) -> [Entry] {
        clients[Self.slot(client)][client.number] ?? []
    }

    /// Returns the number of subscriptions of a client.
    func count(_ client: Client) -> Int {
        clients[Self.slot(client)][client.number]?.count ?? 0
    }

    /// Starts a subscription that catches up, and ends the client's earlier subscription to the same stream.
    mutating func add(
        _ client: Client,
        _ stream: StreamName,
        partition: Int,
        after: Seq,
        filter: EventFilter? = nil,
        hasOutcomes: Bool = false
    ) -> Entry {
        _ = remove(client, stream)
        let options = Options(filter, hasOutcomes: hasOutcomes)
        let entry = Entry(client: client, stream: stream, partition: partition, after: after, options: options)
        clients[Self.slot(client)][client.number, default: []].append(entry)
        count += 1
        client.filterBytes += filter?.byteCount ?? 0
        return entry
    }

    /// Ends a subscription. Returns false if there was none.
    mutating func remove(_ client: Client, _ stream: StreamName) -> Bool {
        let slot = Self.slot(client)
        guard let place = clients[slot][client.number]?.firstIndex(where: { $0.stream == stream }),
            let entry = clients[slot][client.number]?.remove(at: place)
        else { return false }
        if clients[slot][client.number]?.isEmpty == true { clients[slot][client.number] = nil }
        end(entry)
        return true
    }

    /// Ends all subscriptions of a client that is gone.
    mutating func removeAll(_ client: Client) {
        for entry in clients[Self.slot(client)].removeValue(forKey: client.number) ?? [] { end(entry) }
    }

    private mutating func end(_ entry: Entry) {
        count -= 1
        entry.client.filterBytes -= entry.filter?.byteCount ?? 0
        entry.finish()
        guard entry.isLive else { return }
        entry.isLive = false
        guard let last = live[entry.stream]?.popLast() else { return }
        if last !== entry {
            live[entry.stream]?[Int(entry.index)] = last
            last.index = entry.index
        }
        if live[entry.stream]?.isEmpty == true { live[entry.stream] = nil }
    }

    /// Returns all subscriptions to streams of a partition.
    func all(in partition: Int) -> [Entry] {
        clients.flatMap { $0.values.joined().filter { $0.partition == partition } }
    }

    /// Returns the number of live subscriptions to the batch's streams: of the stream with most of them, and of all
    /// together.
    func listeners(to batch: TailBatch) -> (most: Int, all: Int) {
        batch.streams.reduce(into: (0, 0)) { listeners, stream in
            let count = live[stream]?.count ?? 0
            listeners = (max(listeners.0, count), listeners.1 + count)
        }
    }

    // MARK: Pushing

    /// Makes a subscription live that has caught up to the head: from now on the tail feeds it. Sends at once what
    /// proves the rest.
    ///
    /// - Parameters:
    ///   - entry: The subscription.
    ///   - head: The partition's head.
    ///   - gathers: True if some events before the head have not been delivered to live subscriptions yet.
    ///   - send: Sends a frame to a client.
    mutating func becameLive(
        _ entry: Entry,
        head: Seq,
        gathers: Bool = false,
        send: (Client, WebSocketFrame) -> Void
    ) {
        let isAlone = !all(of: entry.client).contains { $0.isLive && $0.partition == entry.partition }
        entry.isLive = true
        entry.index = Int32(live[entry.stream]?.count ?? 0)
        live[entry.stream, default: []].append(entry)
        if isAlone || !gathers, provable(entry.client, entry.partition, head: head) == head {
            send(entry.client, upto(entry.partition, head))
            prove(entry.client, entry.partition, head)
        } else if entry.proven < head {
            // `upto` must wait, because another stream of the client is not proven to the head. A frame of this stream
            // proves the head for it alone.
            let proof = EventRange(from: entry.proven + 1, to: head).frame(stream: entry.stream)
            send(entry.client, proof)
            entry.sent(to: head)
        }
    }

    /// Returns the seq that can be proven for all subscriptions of a client in the partition: the head, unless one
    /// catches up.
    private func provable(_ client: Client, _ partition: Int, head: Seq) -> Seq {
        var proof = head
        for entry in all(of: client)
        where entry.partition == partition && !entry.isLive {
            proof = min(proof, entry.proven)
        }
        return proof
    }

    private func prove(_ client: Client, _ partition: Int, _ seq: Seq) {
        for entry in all(of: client)
        where entry.partition == partition && entry.isLive {
            entry.sent(to: seq)
        }
    }

    /// Delivers a batch to all live subscriptions. `send` returns false if the client does not keep up; then `lagged`
    /// is called, and the subscription ends.
    mutating func deliver(_ batch: TailBatch, send: (Client, WebSocketFrame) -> Bool, lagged: (Entry) -> Void) {
        if batch.hasBarriers {
            for stream in live.keys where live[stream]?.first?.partition == batch.partition {
                deliver(batch, stream, batch.streams.firstIndex(of: stream), send, lagged)
            }
        } else {
            for (index, stream) in batch.streams.enumerated() where live[stream] != nil {
                deliver(batch, stream, index, send, lagged)
            }
        }
    }

    private mutating func deliver(
        _ batch: TailBatch,
        _ stream: StreamName,
        _ index: Int?,
        _ send: (Client, WebSocketFrame) -> Bool,
        _ lagged: (Entry) -> Void
    ) {
        guard let entries = live[stream] else { return }
        let places = batch.delivered(in: index ?? -1)
        var whole: DeliveredBatch?
        var filtered: (batch: FilteredBatch, views: [EventFilter: DeliveredBatch])?
        var late: [Entry] = []
        for entry in entries {
            let frames: [WebSocketFrame]
            if entry.proven >= batch.seqs.lowerBound {
                // It caught up while the batch was gathered, so it gets only the later events.
                let wanted = entry.filter.map { FilteredBatch(batch, places: places).places(for: $0) } ?? places
                let rest = wanted.filter { batch[$0].entry.seq > entry.proven }
                var view = DeliveredBatch(batch, rest, stream, bodyLimit(stream))
                frames = view.frames(after: entry.proven)
            } else if let wanted = entry.filter {
                if filtered == nil { filtered = (FilteredBatch(batch, places: places), [:]) }
                let filter = filtered?.batch.reduced(wanted) ?? wanted
                var view =
                    filtered?.views[filter]
                    ?? DeliveredBatch(batch, filtered?.batch.places(for: filter) ?? [], stream, bodyLimit(stream))
                frames = view.frames(after: entry.proven)
                filtered?.views[filter] = view
            } else {
                if whole == nil { whole = DeliveredBatch(batch, places, stream, bodyLimit(stream)) }
                frames = whole?.frames(after: entry.proven) ?? []
            }
            // A batch without events for it is proven by the next frame with events, or by `upto`.
            if frames.isEmpty { continue }
            var keepsUp = true
            for frame in frames { keepsUp = keepsUp && send(entry.client, frame) }
            if keepsUp { entry.sent(to: batch.last) } else { late.append(entry) }
        }
        for entry in late {
            lagged(entry)
            _ = remove(entry.client, stream)
        }
    }

    /// Proves the head of a partition to all clients of some slots that have not been told of it, or of the log's
    /// state. Called about once a second. If `send` fails because a client reads too slowly, the head stays unproven
    /// for it.
    mutating func tick(
        slots: Range<Int> = Self.slots,
        partition: Int,
        head: Seq,
        send: (Client, WebSocketFrame) -> Bool
    ) {
        let now = Standing(head: head, log: log)
        guard slots.contains(where: { settled[$0][partition] != now }) else { return }
        let frame = upto(partition, head)
        for slot in slots where settled[slot][partition] != now {
            let before = settled[slot][partition]
            settled[slot][partition] = now
            for entries in clients[slot].values {
                guard let client = entries.first?.client else { continue }
                var (least, proof, isNew) = (head, head, false)
                for entry in entries where entry.partition == partition {
                    isNew = before.log != log || before.untold.contains(client.number)
                    if entry.isLive { least = min(least, entry.proven) } else { proof = min(proof, entry.proven) }
                }
                guard least < head || isNew else { continue }
                if proof < head { settled[slot][partition].head = unprovenHead }
                if proof <= least, !isNew, proveApart(entries, partition, head, send) { continue }
                guard proof > least || isNew else { continue }
                if send(client, proof == head ? frame : upto(partition, proof)) {
                    prove(client, partition, proof)
                } else {
                    settled[slot][partition].head = unprovenHead
                    if isNew { settled[slot][partition].untold.insert(client.number) }
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

/// The events of a batch in one stream, as frames that are made once for all clients with the same position.
private struct DeliveredBatch {
    private let stream: StreamName
    private let chunks: [EventRange]
    /// The frames that were made last. Nearly all clients have the same position, so these frames fit the next client.
    private var latest: (proven: Seq, frames: [WebSocketFrame]) = (unprovenHead, [])

    /// Splits the records at `places` into chunks of at most `limit` bytes of events, unless a single event is larger.
    init(_ batch: TailBatch, _ places: [Int], _ stream: StreamName, _ limit: Int) {
        self.stream = stream
        let room = places.reduce(0) { $0 + EventRange.size(value: batch[$1].entry.byteCount) }
        var chunks = [EventRange(from: batch.seqs.lowerBound, to: batch.last, room: min(room, limit))]
        for place in places {
            let item = batch[place]
            var chunk = chunks.removeLast()
            if chunk.count > 0, chunk.body.count + EventRange.size(value: item.entry.byteCount) > limit {
                chunk.to = item.entry.seq - 1
                chunks.append(chunk)
                chunk = EventRange(from: item.entry.seq, to: batch.last)
            }
            batch.withValue(item) { chunk.append(seq: item.entry.seq, value: $0) }
            chunks.append(chunk)
        }
        self.chunks = chunks
    }

    /// Returns the frames for a client that holds everything up to `proven`; none if there is nothing to tell.
    mutating func frames(after proven: Seq) -> [WebSocketFrame] {
        guard chunks[0].count > 0 else { return [] }
        if latest.proven != proven {
            latest = (proven, chunks.indices.map { frame(of: $0, after: proven) })
        }
        return latest.frames
    }

    private func frame(of index: Int, after proven: Seq) -> WebSocketFrame {
        var chunk = chunks[index]
        if index == 0 { chunk.from = proven + 1 }
        return chunk.frame(stream: stream)
    }
}
