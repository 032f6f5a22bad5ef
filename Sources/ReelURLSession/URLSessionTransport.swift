internal import Dispatch
internal import Foundation
public import ReelClient
public import ReelCore

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// The transport on Apple platforms: WebSockets and HTTP through `URLSession`, on one queue that also executes the
/// client.
///
/// The system decides which authorities are trusted at `https`, and which nodes an app may reach at `http` (App
/// Transport Security). It keeps no cookie, answer or password, and follows no redirection. Several clients may share a
/// transport.
public final class URLSessionTransport: SyncTransport {
    private let limits: TransportLimits
    private let queue = QueueExecutor()
    private let timers = DelayedCall.Timers()
    private let requests: RequestDelegate
    private let sockets: SocketDelegate
    private let requestSession: URLSession
    private let socketSession: URLSession

    /// Creates a transport with its own queue.
    public convenience init() { self.init(limits: TransportLimits()) }

    /// Creates a transport with other limits, for tests.
    package init(limits: TransportLimits) {
        self.limits = limits
        requests = RequestDelegate(queue)
        sockets = SocketDelegate(queue)
        let operations = OperationQueue()
        operations.maxConcurrentOperationCount = 1
        operations.underlyingQueue = queue.queue
        let seconds = Double(limits.silenceMs) / 1_000
        requestSession = Self.session(silence: seconds, requests, operations)
        // The client sends pings and closes a silent connection, so the session has no need to.
        socketSession = Self.session(silence: 86_400, sockets, operations)
    }

    private static func session(
        silence: Double,
        _ delegate: any URLSessionDelegate,
        _ operations: OperationQueue
    ) -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = silence
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        configuration.urlCache = nil
        configuration.urlCredentialStorage = nil
        configuration.httpCookieStorage = nil
        configuration.httpShouldSetCookies = false
        return URLSession(configuration: configuration, delegate: delegate, delegateQueue: operations)
    }

    deinit {
        requestSession.invalidateAndCancel()
        socketSession.invalidateAndCancel()
        queue.later { [timers] in timers.cancel() }
    }

    /// The executor on the queue.
    public var executor: any SerialExecutor { queue }

    /// The time since the start of the device in milliseconds, without the time in which it slept.
    public var nowMs: Int64 { QueueExecutor.nowMs }

    /// Throws `bad_address` for anything but `http://HOST:PORT` and `https://HOST:PORT`. The default ports are 80 and
    /// 443.
    public func check(_ node: String) throws(ReelError) {
        if NodeAddress(node)?.url("/") != nil { return }
        throw ReelError(.badAddress, Self.mismatch(node))
    }

    private static func mismatch(_ node: String) -> String {
        "found the node \(node.debugDescription), expected http://HOST:PORT or https://HOST:PORT without a path,"
            + " and a port from 1 to 65535"
    }

    /// Opens a WebSocket to a node. The attempt fails after ten seconds.
    public func connect(
        to node: String,
        _ receive: @escaping @Sendable (TransportEvent) -> Void
    ) -> any TransportConnection {
        let call = SocketCall(queue, timers, limits, receive)
        guard let url = NodeAddress(node)?.url("/v1/socket", isSocket: true) else {
            queue.later { call.handle(.failed(Self.mismatch(node))) }
            return call
        }
        var request = URLRequest(url: url)
        request.setValue(SocketState.subprotocol, forHTTPHeaderField: "Sec-WebSocket-Protocol")
        request.timeoutInterval = socketSession.configuration.timeoutIntervalForRequest
        let task = socketSession.webSocketTask(with: request)
        task.maximumMessageSize = limits.messageBytes
        sockets.start(call, task, openMs: limits.openMs)
        return call
    }

    /// Sends a GET request to a node. Connections are kept for the next request.
    ///
    /// - Parameters:
    ///   - node: the address of the node.
    ///   - target: the path and the query.
    ///   - token: the token of the client; nil: none.
    ///   - receive: called on the executor with the pieces of the answer.
    /// - Returns: The handle that cancels the request.
    public func get(
        from node: String,
        _ target: String,
        token: String?,
        _ receive: @escaping @Sendable (TransportResponse) -> Void
    ) -> any TransportHandle {
        send("GET", to: node, target, token: token, receive)
    }

    /// Sends a POST request with a body of JSON to a node. Connections are kept for the next request.
    ///
    /// - Parameters:
    ///   - node: the address of the node.
    ///   - target: the path and the query.
    ///   - body: the body.
    ///   - token: the token of the client; nil: none.
    ///   - receive: called on the executor with the pieces of the answer.
    /// - Returns: The handle that cancels the request.
    public func post(
        to node: String,
        _ target: String,
        json body: [UInt8],
        token: String?,
        _ receive: @escaping @Sendable (TransportResponse) -> Void
    ) -> any TransportHandle {
        send("POST", to: node, target, json: body, token: token, receive)
    }

    private func send(
        _ method: String,
        to node: String,
        _ target: String,
        json body: [UInt8]? = nil,
        token: String?,
        _ receive: @escaping @Sendable (TransportResponse) -> Void
    ) -> any TransportHandle {
        let call = RequestCall(receive)
        guard let url = NodeAddress(node)?.url(target) else {
            queue.later { call.fail(Self.mismatch(node)) }
            return call
        }
        var request = URLRequest(url: url)
        request.httpMethod = method
        request.timeoutInterval = Double(limits.silenceMs) / 1_000
        // The length of a compressed body would not be that of its bytes.
        request.setValue("identity", forHTTPHeaderField: "Accept-Encoding")
        if let body {
            request.httpBody = Data(body)
            request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        }
        if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
        requests.start(call, requestSession.dataTask(with: request))
        return call
    }

    /// Calls the body once, after `ms` milliseconds. A call that a pause of the process has delayed waits a moment
    /// longer. So a deadline that passed during the pause does not hide an answer.
    public func after(_ ms: Int64, _ body: @escaping @Sendable () -> Void) -> any TransportHandle {
        DelayedCall(after: ms, on: queue, in: timers, body)
    }

    /// Calls the body on the queue; at once if the caller is on the queue. From any thread.
    public func execute(_ body: @escaping @Sendable () -> Void) { queue.execute(body) }

    /// Calls the body after everything that is in the queue now.
    public func onBatchEnd(_ body: @escaping @Sendable () -> Void) { queue.later(body) }
}
