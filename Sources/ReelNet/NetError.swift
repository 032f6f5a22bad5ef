import CLibuv

/// An error of a socket, an address or a loop.
public struct NetError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The closed set of causes that a caller can act on.
    public enum Code: String, Sendable {
        /// Another socket listens on this address already.
        case addressInUse
        /// The system does not permit the action to this user; the usual case is a port below 1024.
        case permissionDenied
        /// The text is not an address, or this machine does not have the address.
        case badAddress
        /// The name has no address, or no name server answered.
        case nameNotFound
        /// No socket listens at the address.
        case refused
        /// There is no route to the host.
        case unreachable
        /// A deadline passed.
        case timedOut
        /// The peer reset the connection.
        case reset
        /// This side closed the connection or the loop, or the connection has ended.
        case closed
        /// The process or the system has no free file descriptor.
        case tooManyFiles
        /// The peer violates the protocol.
        case violation
        /// A certificate or key, of this side or of the peer, is invalid.
        case certificate
        /// The TLS handshake failed, or the TLS session broke.
        case tls
        /// Any other cause; the message has the system's text.
        case other
    }

    /// The cause of the error.
    public let code: Code
    /// One line for people: what was tried and what was found.
    public let message: String
    /// The HTTP status of the response that refused a WebSocket; nil for any other error.
    public let httpStatus: Int?

    /// Creates an error.
    ///
    /// - Parameters:
    ///   - code: The cause.
    ///   - message: One line for people.
    ///   - httpStatus: The status of a response that refused a WebSocket.
    public init(_ code: Code, _ message: String, httpStatus: Int? = nil) {
        self.code = code
        self.message = message
        self.httpStatus = httpStatus
    }

    /// The text `code: message`.
    public var description: String { "\(code.rawValue): \(message)" }

    /// Creates an error from a libuv status (a negated errno). `action` names what was tried.
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
