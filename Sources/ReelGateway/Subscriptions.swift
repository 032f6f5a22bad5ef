import ReelCore
import ReelLog
import ReelNet
import ReelNode

/// A client's place in one stream.
final class Subscription<Client: Subscriber> {
    let client: Client
    let stream: StreamName
    let partition: Int
    /// Filter and outcomes; nil for most subscriptions, where the reference takes little room.
    private let wish: Wish?
    /// The last seq that the client was told to hold.
    fileprivate(set) var proven: Seq
    /// The next seq to look at; ahead of `proven + 1` where a range without events was passed.
    var next: Seq
    /// Gets what the tail brings. Until then it catches up.
    fileprivate(set) var isLive = false
    /// A newer subscription took its place, or it has ended.
    fileprivate(set) var isOver = false
    /// The subscription waits for the log, for outcomes, or for its client to read.
    var isReading = false
    /// It begins to read once another read of its client has ended.
    var awaitsRead = false
    /// Its place among those that listen to the stream.
    fileprivate var index: Int32 = 0

    fileprivate init(
        client: Client,
        stream: StreamName,
        partition: Int,
        after: Seq,
        wish: Wish?
    ) {
        self.client = client
        self.wish = wish
        self.stream = stream
        self.partition = partition
        proven = after
        next = after + 1
    }

    /// What it wants of the stream; nil: everything.
    var filter: EventFilter? { wish?.filter }
    /// Each event comes with its outcome. Such a subscription never becomes live; `OutcomeFollower` reads for it.
    var hasOutcomes: Bool { wish?.hasOutcomes == true }

    /// The head is to be proven though there is no event to send. Only with outcomes.
    var owesProof: Bool {
        get { wish?.owesProof == true }
        set { wish?.owesProof = newValue }
    }

    /// Calls the body once the subscription ends. Only with outcomes.
    func whenOver(_ body: @escaping () -> Void) {
        wish?.over = body
    }

    fileprivate func isOverNow() {
        isOver = true
        wish?.over?()
        wish?.over = nil
    }

    /// Says that all up to here was sent.
    func sent(to seq: Seq) {
        proven = max(proven, seq)
        next = max(next, seq + 1)
    }
}

/// What distinguishes a subscription from one to all events of a stream without outcomes.
private final class Wish {
    let filter: EventFilter?
    let hasOutcomes: Bool
    var owesProof = true
    var over: (() -> Void)?

    /// Nil without filter and outcomes.
    init?(_ filter: EventFilter?, hasOutcomes: Bool) {
        guard filter != nil || hasOutcomes else { return nil }
        self.filter = filter
        self.hasOutcomes = hasOutcomes
    }
}

/// A client that subscribes.
protocol Subscriber: AnyObject {
    /// Its own on this loop. Not its address: a simulated run is the same each time.
    var number: Int { get }
    /// The bytes of the filters of all its subscriptions. `Subscriptions` keeps the sum.
    var filterBytes: Int { get set }
}

/// Who on this loop listens to what. A frame is made once for all clients that stand at the same seq.
struct Subscriptions<Client: Subscriber> {
    typealias Entry = Subscription<Client>

    /// The clients in so many parts, so that not all have to be told of a head at once.
    static var slots: Range<Int> { 0..<32 }

    private var live: [StreamName: [Entry]] = [:]
    /// By slot and client. In arrays: most clients have few.
    private var clients: [[Int: [Entry]]]
    private(set) var count = 0
    /// What `upto` says of the log besides.
    var log = LogState.ok
    /// For each slot and partition what everybody in it has been told.
    private var settled: [[Standing]]
    private let frameLimit: Int

    private struct Standing: Equatable {
        /// The head up to which every live subscription has been proven.
        var head: Seq
        var log: LogState
        /// Clients that could not be told of the log's state.
        var untold: Set<Int> = []
    }

    /// For a log of so many partitions; a frame has at most `frameLimit` bytes unless one event has more.
    init(partitions: Int, frameLimit: Int) {
        let none = [Standing](repeating: Standing(head: -2, log: .ok), count: partitions)
        settled = [[Standing]](repeating: none, count: Self.slots.count)
        clients = [[Int: [Entry]]](repeating: [:], count: Self.slots.count)
        self.frameLimit = frameLimit
    }

    /// How many bytes of events fit into a frame of the stream.
    func bodyLimit(_ stream: StreamName) -> Int {
        max(1, frameLimit - 192 - stream.description.utf8.count)
    }

    /// Numbers that follow each other, or stand in any other row, fall into different slots.
    private static func slot(_ client: Client) -> Int {
        Int((UInt64(truncatingIfNeeded: client.number) &* 0x9e37_79b9_7f4a_7c15) >> 59)
    }

    // MARK: Coming and going

    /// The client's subscription to the stream, where it has one.
    func entry(_ client: Client, _ stream: StreamName) -> Entry? {
        clients[Self.slot(client)][client.number]?.first { $0.stream == stream }
    }

    /// All that a client listens to.
    func all(of client: Client) -> [Entry] {
        clients[Self.slot(client)][client.number] ?? []
    }

    /// How many subscriptions a client has.
    func count(_ client: Client) -> Int {
        clients[Self.slot(client)][client.number]?.count ?? 0
    }

    /// Begins a subscription that catches up; one to the same stream ends.
    mutating func add(
        _ client: Client,
        _ stream: StreamName,
        partition: Int,
        after: Seq,
        filter: EventFilter? = nil,
        hasOutcomes: Bool = false
    ) -> Entry {
        _ = remove(client, stream)
        let wish = Wish(filter, hasOutcomes: hasOutcomes)
        let entry = Entry(client: client, stream: stream, partition: partition, after: after, wish: wish)
        clients[Self.slot(client)][client.number, default: []].append(entry)
        count += 1
        client.filterBytes += filter?.byteCount ?? 0
        return entry
    }

    /// Ends a subscription. False if there was none.
    mutating func remove(_ client: Client, _ stream: StreamName) -> Bool {
        let slot = Self.slot(client)
        guard let place = clients[slot][client.number]?.firstIndex(where: { $0.stream == stream }),
            let entry = clients[slot][client.number]?.remove(at: place)
        else { return false }
        if clients[slot][client.number]?.isEmpty == true { clients[slot][client.number] = nil }
        end(entry)
        return true
    }

    /// The client is gone.
    mutating func removeAll(_ client: Client) {
        for entry in clients[Self.slot(client)].removeValue(forKey: client.number) ?? [] { end(entry) }
    }

    private mutating func end(_ entry: Entry) {
        count -= 1
        entry.client.filterBytes -= entry.filter?.byteCount ?? 0
        entry.isOverNow()
        guard entry.isLive else { return }
        entry.isLive = false
        guard let last = live[entry.stream]?.popLast() else { return }
        if last !== entry {
            live[entry.stream]?[Int(entry.index)] = last
            last.index = entry.index
        }
        if live[entry.stream]?.isEmpty == true { live[entry.stream] = nil }
    }

    /// All subscriptions to streams of a partition.
    func all(in partition: Int) -> [Entry] {
        clients.flatMap { $0.values.joined().filter { $0.partition == partition } }
    }

    /// How many listen to the stream of a batch to which most listen, and to all of its streams.
    func listeners(to batch: TailBatch) -> (most: Int, all: Int) {
        batch.streams.reduce(into: (0, 0)) { listeners, stream in
            let count = live[stream]?.count ?? 0
            listeners = (max(listeners.0, count), listeners.1 + count)
        }
    }

    // MARK: Pushing

    /// All up to the head has been looked at: from now on the tail feeds it. What proves the rest is sent at once.
    /// `gathers`: some of what lies before the head has not been delivered yet to those that are live.
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
            // Another stream of the partition lags behind here, so `upto` must wait: a frame of this stream proves it.
            let proof = EventRange(from: entry.proven + 1, to: head).frame(stream: entry.stream)
            send(entry.client, proof)
            entry.sent(to: head)
        }
    }

    /// What holds for every subscription that a client has in the partition: the head, unless one catches up.
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

    /// Hands a batch to all that listen. `send` says whether the client keeps up; one that does not is `lagged`, its
    /// subscription has ended.
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
                // It has caught up while this was gathered: it is given what it has not.
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
            // What holds nothing for it is proven by the next frame that does, or by `upto`.
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
    /// state: about once a second. What `send` could not send to a client that reads too slowly stays unproven.
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
                if proof < head { settled[slot][partition].head = -2 }
                if proof <= least, !isNew, proveApart(entries, partition, head, send) { continue }
                guard proof > least || isNew else { continue }
                if send(client, proof == head ? frame : upto(partition, proof)) {
                    prove(client, partition, proof)
                } else {
                    settled[slot][partition].head = -2
                    if isNew { settled[slot][partition].untold.insert(client.number) }
                }
            }
        }
    }

    /// Proves the head to each live subscription of a client by a frame `events` of its own, because `upto` would also
    /// prove it for a subscription that waits for outcomes. Returns false if no subscription of the client waits so.
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

/// What a batch brings in one stream, as frames that are made once for all who stand at the same seq.
private struct DeliveredBatch {
    private let stream: StreamName
    private let chunks: [EventRange]
    /// Nearly always all stand at the same seq: the frames of the last one fit the next.
    private var latest: (proven: Seq, frames: [WebSocketFrame]) = (-2, [])

    /// The records at these indexes, in frames of at most so many bytes of events unless one has more.
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

    /// The frames for a client that was told to hold all up to here; none where there is nothing to tell.
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
