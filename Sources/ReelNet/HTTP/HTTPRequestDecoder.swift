/// Reads requests of HTTP/1.1 (RFC 9112) from bytes that come in any pieces. It has no socket and no clock, and it
/// refuses whatever two readers could understand differently.
public struct HTTPRequestDecoder {
    /// What was found.
    public enum Event: Equatable, Sendable {
        /// The head is whole. A body follows in any case, if only an empty one.
        case head(HTTPRequestHead, expectsContinue: Bool)
        /// The body is whole, and so is the request.
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

    /// A decoder at the start of a connection.
    public init(_ limits: HTTPLimits = HTTPLimits()) {
        self.limits = limits
    }

    /// Whether it stands between two requests: nothing of the next one has come.
    public var isBetweenRequests: Bool {
        state == .head && headReader.isEmpty
    }

    /// Bytes of a body that is not whole yet.
    var heldBytes: Int { body.count }

    /// The next event in the bytes from `position` on, which moves behind it; nil if it takes more bytes. After it
    /// has thrown, the connection cannot go on.
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

    /// Path and query. `http://host/path` or `https://host/path` is the same as the path if the host is that of the
    /// Host field.
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
