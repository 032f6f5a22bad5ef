/// What a server asks its owner. All calls are on the server's loop.
public protocol HTTPHandler: AnyObject {
    /// Answers a whole request through the exchange, now or later. Requests of one connection come one by one.
    func respond(to request: HTTPRequest, _ exchange: HTTPExchange)

    /// Decides on a WebSocket that a client asks for in due form.
    func upgrade(_ offer: WebSocketOffer) -> WebSocketDecision

    /// The answer to what is no proper request, or comes when the server is full.
    func refusal(of violation: HTTPViolation) -> HTTPResponse

    /// The answer to a request that the head alone shows to be refused; nil: its body is wanted. Asked before a large
    /// body is read, and before the client is told to go on (`Expect: 100-continue`). The connection ends with it.
    func refusal(of head: HTTPRequestHead) -> HTTPResponse?

    /// True for a request that asks how the server is: it is answered also where the server takes no more connections.
    func isHealthCheck(_ head: HTTPRequestHead) -> Bool
}

extension HTTPHandler {
    /// Reads every body.
    public func refusal(of head: HTTPRequestHead) -> HTTPResponse? { nil }

    /// There is none.
    public func isHealthCheck(_ head: HTTPRequestHead) -> Bool { false }
}

/// A client's wish for a WebSocket.
public struct WebSocketOffer: Hashable, Sendable {
    /// The request that carries it.
    public let head: HTTPRequestHead
    /// The subprotocols that the client knows, the best first.
    public let subprotocols: [String]
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
