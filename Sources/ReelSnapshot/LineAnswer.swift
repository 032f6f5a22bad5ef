import ReelCore
import ReelNet
import ReelNode

/// Sends spooled lines to a client at its own pace: what is in memory as one array, which all who are sent it share; of
/// a file a piece, and the next one when that is with the kernel.
final class LineAnswer {
    private let lines: StateReader.Lines
    private let preamble: [UInt8]
    private let etag: String
    private let place: OpenAnswers.Place
    private var offset = 0
    private var isReading = false

    /// `preamble` stands before the lines.
    init(_ lines: StateReader.Lines, preamble: [UInt8], etag: String, _ place: OpenAnswers.Place) {
        self.lines = lines
        self.preamble = preamble
        self.etag = etag
        self.place = place
    }

    /// Begins. The exchange keeps the answer until it has ended or its client has gone.
    func send(through exchange: HTTPExchange) {
        var headers: HTTPHeaders = ["content-type": "application/x-ndjson", "cache-control": "no-cache"]
        if preamble.isEmpty { headers.add("etag", etag) }
        if lines.isUnpublished { headers.add(UnpublishedStream.header, UnpublishedStream.value) }
        exchange.start(status: 200, headers: headers, length: preamble.count + lines.spool.count)
        exchange.write(preamble)
        exchange.drained = { [unowned exchange] in self.next(exchange) }
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
