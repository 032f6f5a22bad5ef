/// What a server asks its owner. All calls are on the server's loop.
public protocol HTTPHandler: AnyObject {
    /// Answers a whole request through the exchange, now or later. Requests of one connection come one by one.
    func respond(to request: HTTPRequest, _ exchange: HTTPExchange)

    /// Decides on a WebSocket that a client asks for in due form.
    func upgrade(_ offer: WebSocketOffer) -> WebSocketDecision

    /// The answer to what is no proper request, or comes when the server is full.
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

    /// Takes no request for a health check.
    public func isHealthCheck(_ head: HTTPRequestHead) -> Bool { false }
}

/// A client's wish for a WebSocket.
public struct WebSocketOffer: Hashable, Sendable {
    /// The request that carries it.
    public let head: HTTPRequestHead
    /// The subprotocols that the client knows, the best first.
    public let subprotocols: [String]
    /// The client's address, as far as trusted proxies say so; nil once it is gone.
    public var client: SocketAddress? { head.client }
    /// The client's key.
    let key: String
    /// What it offers of permessage-deflate.
    var deflate: DeflateOffer?
}

/// What becomes of a `WebSocketOffer`.
public enum WebSocketDecision {
    /// The connection becomes a WebSocket with this subprotocol (nil: none) and this owner; a message may have so
    /// many bytes.
    case accept(subprotocol: String?, maxMessage: Int, handler: any WebSocketHandler)
    /// An ordinary answer.
    case refuse(HTTPResponse)
}
