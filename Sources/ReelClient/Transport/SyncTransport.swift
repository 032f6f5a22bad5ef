internal import ReelBase
public import ReelCore

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The connections, requests and timers of a client.
///
/// On Linux this is `NetTransport`, and on Apple platforms `URLSessionTransport` of the module `ReelURLSession`.
/// Everything happens on one serial executor, except for the methods that say otherwise. The client makes its calls
/// only on the executor, and every callback is called on it. So an event never changes threads, and no lock is needed.
/// A callback is never called before the call that it was passed to has returned.
public protocol SyncTransport: AnyObject, Sendable {
    /// The executor of all calls and callbacks. The client's actor runs on it.
    var executor: any SerialExecutor { get }

    /// The time in milliseconds of a monotonic clock.
    var nowMs: Int64 { get }

    /// The time in milliseconds since 1970 by the device's wall clock, for times that people read. A transport need not
    /// implement it.
    var wallMs: Int64 { get }

    /// Throws `bad_address` for a text that this transport can never connect to. A client checks its nodes when it is
    /// made. From any thread.
    func check(_ node: String) throws(ReelError)

    /// Opens a WebSocket to a node, with path `/v1/socket` and subprotocol `reel.v1`.
    ///
    /// - Parameters:
    ///   - node: the address, `http://HOST:PORT` or `https://HOST:PORT`.
    ///   - receive: is called first with `.opened` or `.closed`. It is not called again after `.closed` or after
    ///     `close()`.
    func connect(
        to node: String,
        _ receive: @escaping @Sendable (TransportEvent) -> Void
    ) -> any TransportConnection

    /// Sends an HTTP GET request to a node.
    ///
    /// - Parameters:
    ///   - node: the address, `http://HOST:PORT` or `https://HOST:PORT`.
    ///   - target: path and query.
    ///   - token: the token for `Authorization: Bearer`; nil: none.
    ///   - receive: is called with `.head`, then any number of `.body`, then `.end`; or with `.failed` at any time.
    ///     It is not called after `cancel()`.
    func get(
        from node: String,
        _ target: String,
        token: String?,
        _ receive: @escaping @Sendable (TransportResponse) -> Void
    ) -> any TransportHandle

    /// Sends an HTTP POST request with a body of JSON to a node. The answer is received as that of a GET request.
    ///
    /// - Parameters:
    ///   - node: the address, `http://HOST:PORT` or `https://HOST:PORT`.
    ///   - target: path and query.
    ///   - body: the body, of the type `application/json`.
    ///   - token: the token for `Authorization: Bearer`; nil: none.
    ///   - receive: is called with `.head`, then any number of `.body`, then `.end`; or with `.failed` at any time.
    ///     It is not called after `cancel()`.
    func post(
        to node: String,
        _ target: String,
        json body: [UInt8],
        token: String?,
        _ receive: @escaping @Sendable (TransportResponse) -> Void
    ) -> any TransportHandle

    /// Calls the body once after `ms` milliseconds, unless it is cancelled first.
    func after(_ ms: Int64, _ body: @escaping @Sendable () -> Void) -> any TransportHandle

    /// Calls the body on the executor; at once if the caller is on the executor, otherwise soon. From any thread.
    func execute(_ body: @escaping @Sendable () -> Void)

    /// Calls the body once, when everything that has arrived by now was handed to the client. The client then commits
    /// and sends the collected changes.
    func onBatchEnd(_ body: @escaping @Sendable () -> Void)
}

extension SyncTransport {
    /// The system's wall clock.
    public var wallMs: Int64 { WallClock.nowMs() }
}

/// An event of a connection.
public enum TransportEvent: Sendable {
    /// The handshake is done. Frames may be sent.
    case opened
    /// A complete text frame of valid UTF-8.
    case text([UInt8])
    /// A sign of life without content: a ping, which the transport answers itself, or a part of a frame.
    case alive
    /// The answer to the ping with this number.
    case pong(Int)
    /// The end of the connection for any reason: refused, timed out, reset, closed by the node.
    case closed(String)
}

/// A part of the answer to a request.
public enum TransportResponse: Sendable {
    /// The head of the answer: its status code, and the length of its body in bytes if the node has named it.
    case head(status: Int, length: Int64?)
    /// Further bytes of the body, split at any position.
    case body([UInt8])
    /// The body is complete.
    case end
    /// There is no answer, or no complete one. The text is the reason.
    case failed(String)
}

/// An open connection, or one that is being opened.
public protocol TransportConnection {
    /// Sends a text frame. Without effect before `.opened` and after the end.
    func send(_ text: [UInt8])
    /// Sends a ping. The answer arrives as `.pong` with the same number, after all that the node had queued for the
    /// connection.
    func ping(_ number: Int)
    /// Closes the connection. Nothing is received after that.
    func close()
}

/// A request or a timer that is running.
public protocol TransportHandle {
    /// Cancels it. Its callback is not called after that.
    func cancel()
}
