import ReelCore
import ReelNet

/// Sends spooled lines to a client at its own pace: a piece, and the next one when that is with the kernel.
final class LineAnswer {
    private let lines: StateReader.Lines
    private let epoch: Epoch
    private let turn: AnswerTurns.Turn
    private var offset = 0
    private var isReading = false

    init(_ lines: StateReader.Lines, epoch: Epoch, _ turn: AnswerTurns.Turn) {
        self.lines = lines
        self.epoch = epoch
        self.turn = turn
    }

    /// Begins. The exchange keeps the answer until it has ended or its client has gone.
    func send(through exchange: HTTPExchange) {
        exchange.start(
            status: 200,
            headers: [
                "content-type": "application/x-ndjson", "etag": "\"\(epoch):\(lines.seq)\"",
                "cache-control": "no-cache",
            ],
            length: lines.spool.count
        )
        exchange.drained = { [unowned exchange] in self.next(exchange) }
        next(exchange)
    }

    private func next(_ exchange: HTTPExchange) {
        guard exchange.isOpen, !isReading else { return }
        guard offset < lines.spool.count else { return exchange.end() }
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
