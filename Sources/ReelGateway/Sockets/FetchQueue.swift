import ReelCore
import ReelNet
import ReelNode

/// The fetches of one connection, which are answered one after the other, range by range from front to back. On its
/// loop only.
final class FetchQueue: EventReader {
    /// Ranges that a client asked for.
    private struct Fetch {
        let stream: StreamName
        let ref: [UInt8]?
        let options: ReadOptions?
        var ranges: ArraySlice<ClosedRange<Seq>>
    }

    private let client: SocketClient
    private var fetches = Deque<Fetch>()
    /// The number of fetches that wait until their position is read.
    private var admitting = 0
    private(set) var cursor: StreamCursor
    var readState = ReadState.idle
    let account: ReadAccount? = nil

    init(of client: SocketClient, first stream: StreamName) {
        self.client = client
        cursor = StreamCursor(stream, in: 0, after: .none)
    }

    private var gateway: GatewayLoop { client.gateway }

    /// Accepts a fetch, or refuses it.
    func add(_ fetch: ClientFrame.Fetch, ref: [UInt8]?) {
        let (stream, settings) = (fetch.stream, client.settings)
        let lowest = fetch.ranges.map(\.lowerBound).min() ?? 0
        let highest = fetch.ranges.map(\.upperBound).max() ?? 0
        let seqs = fetch.ranges.reduce(0) { $0 + Int64($1.count) }
        guard seqs <= settings.fetchSeqs else {
            let error = ReelError(
                .badRange,
                "found ranges of \(seqs) seqs, expected at most \(settings.fetchSeqs) in all"
            )
            return client.refuse(ServerFrame.Failure(error, stream: stream), ref: ref)
        }
        guard fetches.count + admitting < settings.fetches else {
            let error = ReelError(.limit, "found more than \(settings.fetches) fetches that wait for their answer")
            return client.decline(error, stream, ref: ref)
        }
        admitting += 1
        let wanted = ReadRequest(stream: stream, epoch: fetch.epoch, lowest: lowest, highest: highest)
        gateway.admit(wanted) { [self] failure in
            admitting -= 1
            guard !isOver else { return }
            if let failure { return client.refuse(failure, ref: ref) }
            let options = ReadOptions(nil, hasOutcomes: fetch.hasOutcomes)
            fetches.append(Fetch(stream: stream, ref: ref, options: options, ranges: fetch.ranges[...]))
            if fetches.count == 1 { begin() }
        }
    }

    /// Begins the first range of the first fetch.
    private func begin() {
        guard let fetch = fetches.first, let range = fetch.ranges.first else { return }
        let partition = fetch.stream.partition(of: gateway.context.partitions)
        cursor = StreamCursor(fetch.stream, in: partition, after: range.lowerBound - 1, options: fetch.options)
        gateway.reads.read(self)
    }

    // MARK: EventReader

    var access: Access? { client.access }
    var isOver: Bool { client.isClosed }
    var last: Seq { fetches.first?.ranges.first?.upperBound ?? .none }
    var hasRoom: Bool { client.hasRoom }

    var limits: (bytes: Int, events: Int) {
        (gateway.fanOut.subscriptions.bodyLimit(cursor.stream) - (fetches.first?.ref?.count ?? 0), .max)
    }

    func waitForRoom() { client.wait(self) }

    func received(_ piece: EventRange) {
        guard let fetch = fetches.first else { return }
        if let error = access?.refusalToRead(fetch.stream) {
            // The client has renewed its token since the fetch was accepted, and the new token grants less.
            client.tell(ServerFrame.Failure(error, stream: fetch.stream), ref: fetch.ref)
            return endFirst()
        }
        switch cursor.take(piece, provenEvery: 1) {
        case .send(let range): client.send(range.frame(stream: fetch.stream, ref: fetch.ref))
        case .keep: break
        case .refuse(let error): failed(error)
        }
    }

    /// Begins the next range, or the next fetch.
    func caughtUp() {
        guard var fetch = fetches.popFirst() else { return }
        fetch.ranges = fetch.ranges.dropFirst()
        if !fetch.ranges.isEmpty { fetches.prepend(fetch) }
        begin()
    }

    func failed(_ error: ReelError) {
        guard let fetch = fetches.first else { return }
        client.refuse(gateway.failure(error, fetch.stream), ref: fetch.ref)
        endFirst()
    }

    private func endFirst() {
        _ = fetches.popFirst()
        begin()
    }
}

@available(*, unavailable)
extension FetchQueue: Sendable {}
