import ReelCore
import ReelNet
import ReelNode

/// The maximum size in bytes of an `events` frame without its events and the name of its stream.
private let envelopeBytesMax = 192

/// The clients of one loop that listen, and to which streams.
struct Subscriptions<Client: Subscriber> {
    typealias Entry = Subscription<Client>

    /// The slots that divide the clients, so that not all of them have to be told of a head at once.
    static var slots: Range<Int> { 0..<32 }

    /// The live subscriptions of each stream.
    private(set) var live: [StreamName: [Entry]] = [:]
    /// The subscriptions by slot and client number. They are in arrays, because most clients have few.
    private(set) var clients: [[Int: [Entry]]]
    private(set) var count = 0
    private let frameLimit: Int

    /// Creates an empty value. A frame has at most `frameLimit` bytes, unless a single event is larger.
    init(frameLimit: Int) {
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
        _ = take(client, stream)
        let options = ReadOptions(filter, hasOutcomes: hasOutcomes)
        let entry = Entry(client: client, StreamCursor(stream, in: partition, after: after, options: options))
        clients[Self.slot(client)][client.number, default: []].append(entry)
        count += 1
        client.filterBytes += filter?.byteCount ?? 0
        return entry
    }

    /// Ends a subscription. Returns false if there was none.
    mutating func remove(_ client: Client, _ stream: StreamName) -> Bool {
        guard take(client, stream) else { return false }
        client.subscriptionEnded()
        return true
    }

    /// Removes and ends a subscription, without a call of its client. Returns false if there was none.
    private mutating func take(_ client: Client, _ stream: StreamName) -> Bool {
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
        for entry in clients[Self.slot(client)].removeValue(forKey: client.number) ?? [] {
            end(entry)
            client.subscriptionEnded()
        }
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

    /// Makes a subscription live: from now on it gets the tail's batches.
    mutating func makeLive(_ entry: Entry) {
        entry.isLive = true
        entry.index = Int32(live[entry.stream]?.count ?? 0)
        live[entry.stream, default: []].append(entry)
    }
}
