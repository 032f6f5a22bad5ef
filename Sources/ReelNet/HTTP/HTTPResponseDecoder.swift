/// The head of a response.
public struct HTTPResponseHead: Hashable, Sendable {
    /// The status code, 100 to 599.
    public let status: Int
    /// All header fields.
    public let headers: HTTPHeaders
    /// True for HTTP/1.0.
    public let isOld: Bool
}

/// A decoder for HTTP/1.1 responses that takes bytes in pieces of any size. It returns the body as it arrives. It has
/// no socket and no clock.
public struct HTTPResponseDecoder {
    /// A decoded part of a response.
    public enum Event: Equatable, Sendable {
        /// The head of the final response, or of a 101. Other 1xx responses are skipped.
        case head(HTTPResponseHead)
        /// These bytes of the input belong to the body.
        case data(Range<Int>)
        /// The response is complete.
        case end
    }

    private enum State {
        case head
        case body
        case failed
    }

    /// True for the response to a HEAD request, which has no body whatever its head says.
    public var answersHead = false

    private let limits: HTTPLimits
    private var state = State.head
    private var headReader = HTTPHeadReader()
    private var bodyReader = HTTPBodyReader(.length(0))

    /// Creates a decoder for a new connection.
    public init(_ limits: HTTPLimits = HTTPLimits()) {
        self.limits = limits
    }

    /// True if the body ends with the connection. The connection's end is then the end of the response.
    public var endsWithConnection: Bool { state == .body && bodyReader.endsWithConnection }

    /// Returns the next event in the bytes from `position` on, and moves `position` after it. Returns nil if more bytes
    /// are needed. The bytes after a 101 are not HTTP.
    ///
    /// - Throws: The reason to refuse the response. The connection cannot be used any further then.
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
