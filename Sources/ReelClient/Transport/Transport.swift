public import ReelCore

/// How the client speaks: connections, requests, time.
///
/// On Linux this is `NetTransport`; an app on another platform brings its own. Everything here happens on one serial
/// executor: the client calls only from it, and every callback comes on it. So nothing on the way of an event changes
/// threads, and nothing needs a lock. No callback comes before the call has returned that it was given to.
public protocol Transport: AnyObject, Sendable {
    /// Where calls are made and callbacks come. The client's actor is pinned on it.
    var executor: any SerialExecutor { get }

    /// Milliseconds of a clock that only goes forward.
    var nowMs: Int64 { get }

    /// Throws `bad_address` for a text that this transport cannot connect to, whatever the network does. A client
    /// checks the nodes that it is made with. On any thread.
    func check(_ node: String) throws(ReelError)

    /// Opens a WebSocket to a node, `http://HOST:PORT` or `https://HOST:PORT`, path `/v1/socket`, subprotocol
    /// `reel.v1`. `receive` is called first with `.opened` or `.closed`; after `.closed`, and after `close()`, no more.
    func connect(
        to node: String,
        _ receive: @escaping @Sendable (TransportEvent) -> Void
    ) -> any TransportConnection

    /// Asks a node by HTTP GET. `target`: path and query; `token`: what goes as `Authorization: Bearer`. `receive` is
    /// called with `.status`, then any number of `.body`, then `.end`; or with `.failed` at any time; after `cancel()`
    /// no more.
    func get(
        from node: String,
        _ target: String,
        token: String?,
        _ receive: @escaping @Sendable (TransportResponse) -> Void
    ) -> any TransportRequest

    /// Calls the body once after so many milliseconds, unless it is cancelled before.
    func after(_ ms: Int64, _ body: @escaping @Sendable () -> Void) -> any TransportRequest

    /// Calls the body on the executor: at once if the caller is on it, or else soon. From any thread.
    func execute(_ body: @escaping @Sendable () -> Void)

    /// Calls the body once, when everything that has arrived by now was handed to the client: the moment to commit and
    /// to send what has gathered.
    func atTurnEnd(_ body: @escaping @Sendable () -> Void)
}

/// What happens to a connection.
public enum TransportEvent: Sendable {
    /// The handshake is done: frames may be sent.
    case opened
    /// A whole text frame, valid UTF-8.
    case text([UInt8])
    /// A sign of life without content, such as a ping, which the transport answers itself, or a part of a frame.
    case alive
    /// The end, for whatever reason: refused, timed out, reset, closed by the node.
    case closed(String)
}

/// What comes back from a request.
public enum TransportResponse: Sendable {
    /// The head of the answer.
    case status(Int)
    /// Further bytes of the body, cut anywhere.
    case body([UInt8])
    /// The body is whole.
    case end
    /// There is no answer, or no whole one.
    case failed(String)
}

/// An open connection, or one that is being opened.
public protocol TransportConnection {
    /// Sends a text frame. Without effect before `.opened` and after the end.
    func send(_ text: [UInt8])
    /// Asks for a sign of life, which comes as `.alive`.
    func ping()
    /// Closes it; nothing is received any more.
    func close()
}

/// Something that is under way.
public protocol TransportRequest {
    /// Lets go of it: its callback is not called any more.
    func cancel()
}
