/// The head of an answer.
public struct HTTPResponseHead: Hashable, Sendable {
    /// The status code, 100 to 599.
    public let status: Int
    /// All header fields.
    public let headers: HTTPHeaders
    /// HTTP/1.0.
    public let isOld: Bool
}

/// Reads answers of HTTP/1.1 from bytes that come in any pieces; the body is given on as it comes. It has no socket
/// and no clock.
public struct HTTPResponseDecoder {
    /// What was found.
    public enum Event: Equatable, Sendable {
        /// The head of the final answer, or of a 101. Other 1xx are passed over.
        case head(HTTPResponseHead)
        /// These bytes of the input are body.
        case data(Range<Int>)
        /// The answer is whole.
        case end
    }

    private enum State {
        case head
        case body
        case failed
    }

    /// Set for the answer to a HEAD request: it has no body whatever its head says.
    public var answersHead = false

    private let limits: HTTPLimits
    private var state = State.head
    private var headReader = HTTPHeadReader()
    private var bodyReader = HTTPBodyReader(.length(0))

    /// A decoder at the start of a connection.
    public init(_ limits: HTTPLimits = HTTPLimits()) {
        self.limits = limits
    }

    /// Whether the body ends with the connection: its end is then the answer's.
    public var endsWithConnection: Bool { state == .body && bodyReader.endsWithConnection }

    /// The next event in the bytes from `position` on, which moves behind it; nil if it takes more bytes. After it
    /// has thrown, the connection cannot go on. Behind a 101 the bytes are no HTTP.
    public mutating func next(_ bytes: Span<UInt8>, _ position: inout Int) throws(HTTPViolation) -> Event? {
        let current = state
        state = .failed
        switch current {
        case .head:
            while try headReader.read(bytes, &position, limits) {
                let reader = headReader
                headReader = HTTPHeadReader()
                let head = try Self.head(reader)
                if (100...199).contains(head.status), head.status != 101 { continue }
                bodyReader = HTTPBodyReader(try framing(head))
                state = .body
                return .head(head)
            }
            state = .head
            return nil
        case .body:
            let part = try bodyReader.next(bytes, &position, limits)
            state = part == .end ? .head : .body
            switch part {
            case .data(let range): return .data(range)
            case .end: return .end
            case nil: return nil
            }
        case .failed:
            throw HTTPViolation(400, "bytes behind a broken answer")
        }
    }

    private func framing(_ head: HTTPResponseHead) throws(HTTPViolation) -> HTTPFraming {
        if answersHead || [101, 204, 304].contains(head.status) { return .length(0) }
        return try HTTPFraming(head.headers, isOld: head.isOld) ?? .untilClose
    }

    private static func head(_ reader: HTTPHeadReader) throws(HTTPViolation) -> HTTPResponseHead {
        let line = reader.firstLine
        guard line.count >= 12, line.starts(with: "HTTP/1.".utf8), (48...49).contains(line[7]), line[8] == 0x20,
            line.count == 12 || line[12] == 0x20, line[9...11].allSatisfy({ (48...57).contains($0) }),
            let status = Int(String(decoding: line[9...11], as: UTF8.self)), (100...599).contains(status)
        else { throw HTTPViolation(400, "a first line that is not VERSION STATUS REASON") }
        return HTTPResponseHead(status: status, headers: reader.headers, isOld: line[7] == 48)
    }
}
