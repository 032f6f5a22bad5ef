import COpenSSL

/// The opening handshake of RFC 6455, section 4, for both sides.
enum WebSocketHandshake {
    // MARK: Server

    /// Returns the request for a WebSocket in a head; nil if the head does not ask for one.
    ///
    /// - Throws: The refusal of an invalid request for a WebSocket.
    static func offer(in head: HTTPRequestHead, hasBody: Bool) throws(HTTPViolation) -> WebSocketOffer? {
        guard head.headers.has("upgrade", token: "websocket"), head.headers.has("connection", token: "upgrade") else {
            guard head.headers["sec-websocket-key"] == nil else {
                throw HTTPViolation(400, "Sec-WebSocket-Key without Connection: Upgrade and Upgrade: websocket")
            }
            return nil
        }
        guard head.method == "GET", !head.isOld, !hasBody else {
            throw HTTPViolation(400, "a WebSocket is asked for by GET of HTTP/1.1 without a body")
        }
        guard head.headers.all("sec-websocket-version") == ["13"] else {
            throw HTTPViolation(426, "a Sec-WebSocket-Version other than 13")
        }
        let keys = head.headers.all("sec-websocket-key")
        guard keys.count == 1, Base64.isSixteenBytes(keys[0]) else {
            throw HTTPViolation(400, "a Sec-WebSocket-Key that is not the Base64 of 16 bytes, once")
        }
        let subprotocols = head.headers.tokens("sec-websocket-protocol")
        guard Set(subprotocols).count == subprotocols.count,
            subprotocols.allSatisfy({ $0.utf8.allSatisfy(HTTPCharacters.isToken) })
        else { throw HTTPViolation(400, "a Sec-WebSocket-Protocol that is no list of different tokens") }
        return WebSocketOffer(
            head: head,
            subprotocols: subprotocols,
            key: keys[0],
            deflate: DeflateOffer(in: head.headers.all("sec-websocket-extensions"))
        )
    }

    /// Returns the response that opens the socket. `deflate` is the accepted offer of permessage-deflate.
    static func acceptance(of offer: WebSocketOffer, _ subprotocol: String?, deflate: DeflateOffer?) -> [UInt8] {
        var headers: HTTPHeaders = [
            "upgrade": "websocket", "connection": "Upgrade", "sec-websocket-accept": accept(offer.key),
        ]
        if let subprotocol { headers.add("sec-websocket-protocol", subprotocol) }
        if let deflate { headers.add("sec-websocket-extensions", deflate.answer) }
        return HTTPEncoder.head(101, headers)
    }

    /// Returns the value that proves that the server has understood the key.
    static func accept(_ key: String) -> String {
        let text = Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)
        var digest = [UInt8](repeating: 0, count: 20)
        EVP_Digest(text, text.count, &digest, nil, EVP_sha1(), nil)
        return Base64.encode(digest)
    }

    // MARK: Client

    /// Returns a key of 16 random bytes.
    static func newKey() -> String {
        Base64.encode((0..<16).map { _ in UInt8.random(in: .min ... .max) })
    }

    /// Returns the bytes of the request for a WebSocket.
    static func request(_ target: WebSocketTarget, key: String) -> [UInt8] {
        var headers: HTTPHeaders = [
            "host": target.authority, "upgrade": "websocket", "connection": "Upgrade", "sec-websocket-key": key,
            "sec-websocket-version": "13",
        ]
        if !target.subprotocols.isEmpty {
            headers.add("sec-websocket-protocol", target.subprotocols.joined(separator: ", "))
        }
        for field in target.headers.fields { headers.add(field.name, field.value) }
        return HTTPEncoder.message("GET \(target.path) HTTP/1.1", headers)
    }

    /// Checks the server's response and returns the subprotocol that it chose.
    ///
    /// - Throws: A `violation` if the response does not open the socket.
    static func verify(
        _ head: HTTPResponseHead,
        key: String,
        subprotocols: [String]
    ) throws(NetError) -> String? {
        guard head.status == 101 else {
            throw NetError(
                .violation,
                "status \(head.status) in place of 101 to a WebSocket's handshake",
                httpStatus: head.status
            )
        }
        guard head.headers.has("upgrade", token: "websocket"), head.headers.has("connection", token: "upgrade") else {
            throw NetError(.violation, "an answer to a WebSocket's handshake without its Upgrade and Connection")
        }
        guard head.headers.all("sec-websocket-accept") == [accept(key)] else {
            throw NetError(.violation, "a Sec-WebSocket-Accept that does not fit the key")
        }
        guard head.headers.all("sec-websocket-extensions").isEmpty else {
            throw NetError(.violation, "a WebSocket extension that was not asked for")
        }
        let chosen = head.headers.all("sec-websocket-protocol")
        guard chosen.count <= 1, chosen.allSatisfy(subprotocols.contains) else {
            throw NetError(.violation, "a WebSocket subprotocol that was not offered")
        }
        return chosen.first
    }
}
