/// The owner of a server, which answers its requests. All calls are on the server's loop.
public protocol HTTPHandler: AnyObject {
    /// Called with a complete request, which the handler answers through the exchange, now or later. The requests of
    /// one connection are delivered one at a time.
    func respond(to request: HTTPRequest, _ exchange: HTTPExchange)

    /// Called with a valid request for a WebSocket. Returns the decision.
    func upgrade(_ offer: WebSocketOffer) -> WebSocketDecision

    /// Returns the response to an invalid request, or to one that arrives when the server is full.
    func refusal(of violation: HTTPViolation) -> HTTPResponse

    /// Returns the refusal of a request that can be refused by its head alone; nil: the body is to be read. The server
    /// calls this before it reads a large body or answers `Expect: 100-continue`. A refusal closes the connection.
    func refusal(of head: HTTPRequestHead) -> HTTPResponse?

    /// Returns true for a health check, which is answered also beyond the limit of connections.
    func isHealthCheck(_ head: HTTPRequestHead) -> Bool
}

extension HTTPHandler {
    /// Refuses no request by its head.
    public func refusal(of head: HTTPRequestHead) -> HTTPResponse? { nil }

    /// Treats no request as a health check.
    public func isHealthCheck(_ head: HTTPRequestHead) -> Bool { false }
}

/// A client's request for a WebSocket.
public struct WebSocketOffer: Hashable, Sendable {
    /// The head of the request.
    public let head: HTTPRequestHead
    /// The subprotocols that the client supports, in order of preference.
    public let subprotocols: [String]
    /// The client's address. It comes from trusted proxies if they name it. Nil once the connection is gone.
    public var client: SocketAddress? { head.client }
    /// The client's `Sec-WebSocket-Key`.
    let key: String
    /// The acceptable offer of permessage-deflate; nil if there is none.
    var deflate: DeflateOffer?
}

/// The decision on a `WebSocketOffer`.
public enum WebSocketDecision {
    /// The connection becomes a WebSocket. `subprotocol` is the chosen one (nil: none), `maxMessage` the largest
    /// message in bytes, `handler` the owner.
    case accept(subprotocol: String?, maxMessage: Int, handler: any WebSocketHandler)
    /// The client gets an ordinary response.
    case refuse(HTTPResponse)
}
