/// A decoder for HTTP/1.1 requests (RFC 9112) that takes bytes in pieces of any size. It has no socket and no clock. It
/// refuses any message that two readers could understand differently.
public struct HTTPRequestDecoder {
    /// A decoded part of a request.
    public enum Event: Equatable, Sendable {
        /// The head is complete. A body follows in any case; it may be empty.
        case head(HTTPRequestHead, expectsContinue: Bool)
        /// The body is complete, and so is the request.
        case body([UInt8])
    }

    private enum State {
        case head
        case body
        case failed
    }

    private static let methods: Set = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "QUERY"]

    private let limits: HTTPLimits
    private var state = State.head
    private var headReader = HTTPHeadReader()
    private var bodyReader = HTTPBodyReader(.length(0))
    private var body: [UInt8] = []

    /// Creates a decoder for a new connection.
    public init(_ limits: HTTPLimits = HTTPLimits()) {
        self.limits = limits
    }

    /// True between two requests: no byte of the next request has arrived.
    public var isBetweenRequests: Bool {
        state == .head && headReader.isEmpty
    }

    /// The number of bytes of a body that is not complete yet.
    var heldBytes: Int { body.count }

    /// Returns the next event in the bytes from `position` on, and moves `position` after it. Returns nil if more bytes
    /// are needed.
    ///
    /// - Throws: The reason to refuse the request. The connection cannot be used for a further request then.
    public mutating func next(_ bytes: Span<UInt8>, _ position: inout Int) throws(HTTPViolation) -> Event? {
        let current = state
        state = .failed
        switch current {
        case .head:
            guard try headReader.read(bytes, &position, limits) else {
                state = .head
                return nil
            }
            return try finishHead()
        case .body:
            while let part = try bodyReader.next(bytes, &position, limits) {
                switch part {
                case .data(let range):
                    guard range.count <= limits.body - body.count else { throw tooLarge }
                    bytes.extracting(range).withUnsafeBufferPointer { body.append(contentsOf: $0) }
                case .end:
                    let whole = body
                    body = []
                    state = .head
                    return .body(whole)
                }
            }
            state = .body
            return nil
        case .failed:
            throw HTTPViolation(400, "bytes behind a refused request")
        }
    }

    private mutating func finishHead() throws(HTTPViolation) -> Event {
        let head = try Self.head(headReader)
        headReader = HTTPHeadReader()
        let framing = try HTTPFraming(head.headers, isOld: head.isOld) ?? .length(0)
        if case .length(let length) = framing, length > limits.body { throw tooLarge }
        var expectsContinue = false
        if let expectation = head.headers["expect"] {
            guard head.headers.all("expect").count == 1, expectation.lowercased() == "100-continue" else {
                throw HTTPViolation(417, "an expectation other than 100-continue")
            }
            expectsContinue = !head.isOld && framing != .length(0)
        }
        bodyReader = HTTPBodyReader(framing)
        state = .body
        return .head(head, expectsContinue: expectsContinue)
    }

    private var tooLarge: HTTPViolation { HTTPViolation(413, "a body of more than \(limits.body) bytes") }

    private static func head(_ reader: HTTPHeadReader) throws(HTTPViolation) -> HTTPRequestHead {
        let parts = reader.firstLine.split(separator: 0x20, omittingEmptySubsequences: false)
        guard parts.count == 3, !parts[0].isEmpty, parts[0].allSatisfy(HTTPCharacters.isToken) else {
            throw HTTPViolation(400, "a first line that is not METHOD TARGET VERSION")
        }
        let isOld = try Self.isOld(parts[2])
        let method = String(decoding: parts[0], as: UTF8.self)
        guard methods.contains(method) else { throw HTTPViolation(501, "an unknown method") }
        guard !parts[1].isEmpty, parts[1].allSatisfy(HTTPCharacters.isTarget) else {
            throw HTTPViolation(400, "a request target with a byte that does not belong there")
        }
        let hosts = reader.headers.all("host")
        guard hosts.count == 1 || isOld && hosts.isEmpty else {
            throw HTTPViolation(400, "\(hosts.count) Host fields where one is needed")
        }
        let host = hosts.first ?? ""
        guard hosts.isEmpty || HTTPAuthority.isValid(host) else {
            throw HTTPViolation(400, "a Host field that names no host")
        }
        let target = try Self.target(String(decoding: parts[1], as: UTF8.self), method, host)
        return HTTPRequestHead(method: method, target: target, host: host, headers: reader.headers, isOld: isOld)
    }

    private static func isOld(_ version: ArraySlice<UInt8>) throws(HTTPViolation) -> Bool {
        let bytes = Array(version)
        guard bytes.count == 8, bytes.starts(with: "HTTP/".utf8), (48...57).contains(bytes[5]),
            bytes[6] == UInt8(ascii: "."), (48...57).contains(bytes[7])
        else { throw HTTPViolation(400, "a first line that is not METHOD TARGET VERSION") }
        guard bytes[5] == UInt8(ascii: "1"), bytes[7] <= UInt8(ascii: "1") else {
            throw HTTPViolation(505, "a version other than HTTP/1.1")
        }
        return bytes[7] == UInt8(ascii: "0")
    }

    /// Returns the path and the query. An absolute target (`http://host/path` or `https://host/path`) is equivalent if
    /// its host is that of the Host field.
    private static func target(_ text: String, _ method: String, _ host: String) throws(HTTPViolation) -> String {
        if text.hasPrefix("/") { return text }
        if text == "*", method == "OPTIONS" { return text }
        let scheme = ["http://", "https://"].first { text.lowercased().hasPrefix($0) }
        guard let scheme else { throw HTTPViolation(400, "a request target that does not begin with a slash") }
        let rest = text.dropFirst(scheme.count)
        let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
        guard rest[..<end].lowercased() == host.lowercased() else {
            throw HTTPViolation(400, "a request target for another host than the Host field's")
        }
        return rest[end...].hasPrefix("/") ? String(rest[end...]) : "/" + rest[end...]
    }
}
