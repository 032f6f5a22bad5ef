import ReelCore
import ReelNet

/// A download of a snapshot or a delta. It reads the answer line by line, so that the whole answer is never in memory.
/// On the loop of its client.
final class StateDownload {
    /// The reason why there is no state.
    enum Failure: Error {
        /// The node does not answer, or its answer is too large.
        case silent(NetError)
        /// The node refuses the request.
        case refused(Refusal)
        /// The lines are not a valid state.
        case wrong(ReelError)
    }

    /// The largest answer in bytes: the fold of a larger one would not fit into most memories.
    static let bytesMax = 1 << 30
    /// The longest line in bytes: an object of 768 KiB with the history of its texts is shorter.
    static let lineBytesMax = 64 << 20
    /// The largest body of a refusal in bytes.
    private static let refusalBytesMax = 64 << 10
    /// The timeout of the whole answer, because a node that sends slowly never exceeds the inactivity timeout.
    private static let timeout = Duration.seconds(600)

    private var reader: SnapshotReader
    private var status = 0
    private var line: [UInt8] = []
    private var bytesLeft = StateDownload.bytesMax
    private var refusal: [UInt8] = []
    private var call: HTTPCall?
    private var timer: LoopTimer?
    private var finish: ((Result<Fold, Failure>) -> Void)?

    private init(_ reader: SnapshotReader, _ finish: @escaping (Result<Fold, Failure>) -> Void) {
        self.reader = reader
        self.finish = finish
    }

    /// Sends the request. Calls `finish` once, on the loop, with the state that `reader` folds from the lines.
    static func begin(
        _ request: HTTPClientRequest,
        _ client: HTTPClient,
        into reader: SnapshotReader,
        then finish: @escaping (Result<Fold, Failure>) -> Void
    ) {
        let download = StateDownload(reader, finish)
        download.timer = client.loop.timer(after: timeout) {
            download.end(.failure(.silent(NetError(.timedOut, "the answer was not whole within \(timeout)"))))
        }
        let call = client.send(request) { download.take($0) }
        if download.finish != nil { download.call = call }
    }

    private func take(_ event: HTTPClient.Event) {
        guard finish != nil else { return }
        switch event {
        case .head(let head): status = head.status
        case .data(let bytes) where status == 200: read(bytes)
        case .data(let bytes): refusal += bytes.prefix(Self.refusalBytesMax - refusal.count)
        case .end where status == 200:
            end(Result { () throws(ReelError) in try reader.finish() }.mapError { .wrong($0) })
        case .end: end(.failure(.refused(Refusal(HTTPResponse(status: status, body: refusal)))))
        case .failed(let error): end(.failure(.silent(error)))
        }
    }

    private func read(_ bytes: [UInt8]) {
        bytesLeft -= bytes.count
        guard bytesLeft >= 0 else {
            return end(.failure(.silent(NetError(.violation, "an answer of more than \(Self.bytesMax) bytes"))))
        }
        var rest = bytes[...]
        while let lineFeed = rest.firstIndex(of: UInt8(ascii: "\n")) {
            line += rest[..<lineFeed]
            rest = rest[(lineFeed + 1)...]
            do throws(ReelError) {
                try line.withUnsafeBufferPointer { (line) throws(ReelError) in try reader.read(line: Bytes(line)) }
            } catch {
                return end(.failure(.wrong(error)))
            }
            line.removeAll(keepingCapacity: true)
        }
        line += rest
        if line.count > Self.lineBytesMax {
            end(.failure(.silent(NetError(.violation, "a line of more than \(Self.lineBytesMax) bytes"))))
        }
    }

    private func end(_ result: Result<Fold, Failure>) {
        let (finish, call) = (finish, call)
        self.finish = nil
        self.call = nil
        timer?.cancel()
        timer = nil
        call?.cancel()
        finish?(result)
    }
}
