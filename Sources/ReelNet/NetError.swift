import CLibuv

/// What went wrong on a socket, an address or a loop.
public struct NetError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The closed set of causes that a caller can act on.
    public enum Code: String, Sendable {
        /// Another socket listens there already.
        case addressInUse
        /// The system does not let this user do it (a port below 1024, mostly).
        case permissionDenied
        /// Not an address, or none of this machine.
        case badAddress
        /// The name has no address, or nobody answered who could know.
        case nameNotFound
        /// Nobody listens there.
        case refused
        /// No way to that host.
        case unreachable
        /// A deadline passed.
        case timedOut
        /// The peer broke the connection off.
        case reset
        /// The connection, or the loop, was closed on this side or came to its end.
        case closed
        /// The process or the system has no descriptor left.
        case tooManyFiles
        /// The peer does not keep to the protocol.
        case violation
        /// A certificate or key, of this side or of the peer, is not as it must be.
        case certificate
        /// TLS could not be agreed on, or broke.
        case tls
        /// Anything else; the message has the system's words.
        case other
    }

    /// The cause.
    public let code: Code
    /// One line for people: what was tried, what was found.
    public let message: String
    /// The HTTP status of an answer that said no to a WebSocket; nil for any other error.
    public let httpStatus: Int?

    /// An error of this cause.
    public init(_ code: Code, _ message: String, httpStatus: Int? = nil) {
        self.code = code
        self.message = message
        self.httpStatus = httpStatus
    }

    /// `code: message`.
    public var description: String { "\(code.rawValue): \(message)" }

    /// From a libuv status (a negated errno).
    init(status: Int32, _ action: String) {
        self.init(Self.code(of: status), "\(action): \(String(cString: uv_strerror(status)))")
    }

    private static func code(of status: Int32) -> Code {
        switch status {
        case UV_EADDRINUSE.rawValue: .addressInUse
        case UV_EACCES.rawValue, UV_EPERM.rawValue: .permissionDenied
        case UV_EADDRNOTAVAIL.rawValue, UV_EINVAL.rawValue, UV_EAFNOSUPPORT.rawValue: .badAddress
        case UV_EAI_NONAME.rawValue, UV_EAI_AGAIN.rawValue, UV_EAI_FAIL.rawValue, UV_EAI_NODATA.rawValue: .nameNotFound
        case UV_ECONNREFUSED.rawValue: .refused
        case UV_ENETUNREACH.rawValue, UV_EHOSTUNREACH.rawValue: .unreachable
        case UV_ETIMEDOUT.rawValue: .timedOut
        case UV_ECONNRESET.rawValue, UV_EPIPE.rawValue, UV_ECONNABORTED.rawValue: .reset
        case UV_EOF.rawValue, UV_ECANCELED.rawValue: .closed
        case UV_EMFILE.rawValue, UV_ENFILE.rawValue: .tooManyFiles
        default: .other
        }
    }
}
