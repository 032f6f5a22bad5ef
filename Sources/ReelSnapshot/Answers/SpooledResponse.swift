import ReelCore
import ReelNet
import ReelNode

/// Sends spooled lines to a client at the client's pace. Lines in memory are written as one array, which all responses
/// share. Lines in a file are written in pieces: the next piece is read once the kernel has accepted the previous one.
final class SpooledResponse {
    private let shared: SnapshotNode.SharedLines
    private let preamble: [UInt8]
    private let etag: String
    /// The client's share of `SnapshotNode.spoolReaders`; nil if the lines are in memory.
    private let share: ResponseLimiter.Place?
    private let withinMs: Int64
    private var timer: LoopTimer?
    private var offset = 0
    private var isReading = false

    /// Makes a response.
    ///
    /// - Parameters:
    ///   - shared: The lines.
    ///   - preamble: The bytes before the lines.
    ///   - etag: The entity tag; sent only without a preamble.
    ///   - share: The client's share of `SnapshotNode.spoolReaders`; nil if the lines are in memory.
    ///   - withinMs: The time within which the client must read lines in a file, in milliseconds. Then the connection
    ///     is aborted.
    init(
        _ shared: SnapshotNode.SharedLines,
        preamble: [UInt8],
        etag: String,
        _ share: ResponseLimiter.Place?,
        withinMs: Int64
    ) {
        self.shared = shared
        self.preamble = preamble
        self.etag = etag
        self.share = share
        self.withinMs = withinMs
    }

    deinit { timer?.cancel() }

    private var lines: StateReader.Lines { shared.lines }

    /// Starts sending. The exchange keeps this object until the response has ended or the client has gone.
    func send(through exchange: HTTPExchange) {
        var headers: HTTPHeaders = ["content-type": "application/x-ndjson", "cache-control": "no-cache"]
        if preamble.isEmpty { headers.add("etag", etag) }
        if lines.isUnpublished { headers.add(UnpublishedStream.header, UnpublishedStream.value) }
        exchange.start(status: 200, headers: headers, length: preamble.count + lines.spool.count)
        exchange.write(preamble)
        exchange.drained = { [unowned exchange] in self.next(exchange) }
        if lines.spool.memory == nil {
            timer = exchange.loop.timer(after: .milliseconds(withinMs)) { [weak exchange] in exchange?.abort() }
        }
        next(exchange)
    }

    private func next(_ exchange: HTTPExchange) {
        guard exchange.isOpen, !isReading else { return }
        guard offset < lines.spool.count else { return exchange.end() }
        if let bytes = lines.spool.memory {
            offset = bytes.count
            return exchange.write(bytes)
        }
        isReading = true
        let (spool, offset) = (lines.spool, offset)
        exchange.loop.offload {
            Result { () throws(SnapshotError) in try spool.piece(from: offset) }
        } then: { piece in
            self.isReading = false
            guard let bytes = try? piece.get(), !bytes.isEmpty else { return exchange.abort() }
            self.offset += bytes.count
            exchange.write(bytes)
            if self.offset == self.lines.spool.count { exchange.end() }
        }
    }
}
