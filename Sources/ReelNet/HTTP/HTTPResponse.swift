/// An HTTP response.
public struct HTTPResponse: Hashable, Sendable {
    /// The status code, 200 to 599.
    public var status: Int
    /// The header fields; those for the length and the connection are added when the response is sent.
    public var headers: HTTPHeaders
    /// The body.
    public var body: [UInt8]

    /// Creates a response.
    public init(status: Int, headers: HTTPHeaders = HTTPHeaders(), body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// Returns the reason phrase for a status code. It knows the codes that a server of this kind uses.
    public static func reason(_ status: Int) -> String {
        switch status {
        case 100: "Continue"
        case 101: "Switching Protocols"
        case 200: "OK"
        case 201: "Created"
        case 202: "Accepted"
        case 204: "No Content"
        case 304: "Not Modified"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 406: "Not Acceptable"
        case 408: "Request Timeout"
        case 409: "Conflict"
        case 410: "Gone"
        case 413: "Content Too Large"
        case 414: "URI Too Long"
        case 415: "Unsupported Media Type"
        case 417: "Expectation Failed"
        case 426: "Upgrade Required"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 500: "Internal Server Error"
        case 501: "Not Implemented"
        case 502: "Bad Gateway"
        case 503: "Service Unavailable"
        case 504: "Gateway Timeout"
        case 505: "HTTP Version Not Supported"
        default: "Status \(status)"
        }
    }
}

/// An encoder for heads and chunks.
enum HTTPEncoder {
    /// Returns the head of a response, including the empty line.
    static func head(_ status: Int, _ headers: HTTPHeaders) -> [UInt8] {
        message("HTTP/1.1 \(status) \(HTTPResponse.reason(status))", headers)
    }

    /// Returns the first line, the fields and the empty line.
    static func message(_ firstLine: String, _ headers: HTTPHeaders) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(256)
        bytes += firstLine.utf8
        bytes += "\r\n".utf8
        for field in headers.fields {
            bytes += field.name.utf8
            bytes += ": ".utf8
            // The filter makes sure that a value cannot break out of its line, whatever its source is.
            bytes += field.value.utf8.map { HTTPCharacters.isValue($0) ? $0 : UInt8(ascii: " ") }
            bytes += "\r\n".utf8
        }
        bytes += "\r\n".utf8
        return bytes
    }

    /// Returns the bytes before a chunk of `count` bytes. `chunkEnd` goes after the chunk.
    static func chunkStart(_ count: Int) -> [UInt8] { Array("\(String(count, radix: 16))\r\n".utf8) }

    static let chunkEnd = Array("\r\n".utf8)
    static let lastChunk = Array("0\r\n\r\n".utf8)
}
