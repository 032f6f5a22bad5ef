import COpenSSL

/// One side of a TLS connection. It turns received bytes into plain bytes, and plain bytes into bytes to send. It has
/// no socket and no clock.
final class TLSSession {
    private enum State {
        case shakingHands
        case open
        case failed
    }

    /// The plain bytes that wait to be sealed: until the handshake is done, and until the kernel takes what was sealed
    /// before.
    var unsealed = WriteQueue()
    /// True if the peer has said that it sends no more.
    private(set) var hasEnded = false
    /// True if this side has said that it sends no more.
    private(set) var hasSaidEnd = false
    /// True if no byte of the peer has arrived.
    private(set) var isFresh = true
    /// True on the server's side.
    let isServer: Bool

    private let ssl: OpaquePointer
    private let bytes = TLSBytes()
    private let context: TLSContext
    /// The host that the client connects to; empty on the server's side.
    private let host: String
    private var state = State.shakingHands
    /// The defect of the peer's certificate, in words.
    private var rejection: String?

    /// Creates the server's side.
    convenience init(_ server: TLSServer) throws(NetError) {
        try self.init(server.current, host: "", isServer: true)
        SSL_set_accept_state(ssl)
    }

    /// Creates the client's side. The peer's certificate has to be for `host`, a name or an address, unless the client
    /// trusts one certificate.
    convenience init(_ client: TLSClient, host: String) throws(NetError) {
        try self.init(client.context, host: host, isServer: false)
        SSL_set_connect_state(ssl)
        SSL_set_verify(ssl, SSL_VERIFY_PEER, Self.verifyPeer)
        let isFine =
            if !client.checksHost {
                true
            } else if SocketAddress.isNumeric(host) {
                X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1
            } else {
                reel_SSL_set_tlsext_host_name(ssl, host) == 1 && SSL_set1_host(ssl, host) == 1
            }
        guard isFine else { throw TLSFailure.error("\(host.debugDescription) as the name of a TLS server") }
        SSL_set_hostflags(ssl, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
    }

    private init(_ context: TLSContext, host: String, isServer: Bool) throws(NetError) {
        guard let ssl = SSL_new(context.pointer) else { throw TLSFailure.error("starting TLS") }
        self.context = context
        self.ssl = ssl
        self.host = host
        self.isServer = isServer
        guard let bio = bytes.makeBIO() else { throw TLSFailure.error("starting TLS") }
        SSL_set_bio(ssl, bio, bio)
        SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(self).toOpaque())
    }

    deinit {
        SSL_free(ssl)
    }

    /// True if the handshake is done and nothing has failed.
    var isOpen: Bool { state == .open }

    /// Returns the bytes that have to go to the peer; empty if there are none.
    func takeOutput() -> [UInt8] { bytes.takeOutput() }

    // MARK: Reading

    /// Lends the received bytes during `body`, which calls `shakeHands` and `read`.
    func withInput<E: Error>(_ input: UnsafeRawBufferPointer, _ body: () throws(E) -> Void) throws(E) {
        isFresh = isFresh && input.isEmpty
        bytes.input = input
        defer { bytes.input = UnsafeRawBufferPointer(start: nil, count: 0) }
        try body()
    }

    /// Continues the handshake with the bytes that have arrived; `isOpen` is true once it is done. The first call
    /// begins a client's handshake.
    func shakeHands() throws(NetError) {
        guard state == .shakingHands else { return }
        ERR_clear_error()
        let status = SSL_do_handshake(ssl)
        if status == 1 {
            state = .open
        } else if SSL_get_error(ssl, status) != SSL_ERROR_WANT_READ {
            throw failure()
        }
    }

    /// Opens as many bytes as have arrived and fit into `buffer`, and returns their number; 0 if there are none.
    /// `hasEnded` may be true then.
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(NetError) -> Int {
        var total = 0
        while state == .open, !hasEnded, total < buffer.count, let start = buffer.baseAddress {
            ERR_clear_error()
            var count = 0
            let status = SSL_read_ex(ssl, start + total, buffer.count - total, &count)
            total += count
            if status == 1 { continue }
            switch SSL_get_error(ssl, status) {
            case SSL_ERROR_WANT_READ: return total
            case SSL_ERROR_ZERO_RETURN: hasEnded = true
            default: throw failure()
            }
        }
        return total
    }

    // MARK: Writing

    /// Seals the next piece of the waiting bytes, at most what `scratch` holds. Requires an open session with waiting
    /// bytes.
    func sealNext(scratch: UnsafeMutableRawBufferPointer) throws(NetError) {
        ERR_clear_error()
        var written = 0
        let status = unsealed.withNext(scratch: scratch) { plain in
            SSL_write_ex(ssl, plain.baseAddress, min(plain.count, WriteQueue.chunkBytes), &written)
        }
        guard status == 1 else { throw failure() }
        unsealed.consume(written)
    }

    /// Tells the peer that this side sends no more.
    func sayEnd() {
        guard state == .open, !hasSaidEnd else { return }
        hasSaidEnd = true
        ERR_clear_error()
        SSL_shutdown(ssl)
    }

    // MARK: Failures

    /// Returns the error for the failure that OpenSSL has just reported. An alert to the peer may be in `takeOutput`.
    private func failure() -> NetError {
        state = .failed
        let reason = TLSFailure.reason()
        if let rejection {
            return NetError(.certificate, "the certificate of \(host) is not trusted: \(rejection)")
        }
        return NetError(.tls, "\(isServer ? "TLS" : "TLS with \(host)"): \(reason ?? "the connection broke")")
    }

    /// Called by OpenSSL with each result of the certificate check. It keeps the first defect, which is the useful one
    /// in an error message.
    private static let verifyPeer: SSL_verify_cb = { isFine, store in
        guard isFine != 1 else { return 1 }
        let index = SSL_get_ex_data_X509_STORE_CTX_idx()
        if let ssl = X509_STORE_CTX_get_ex_data(store, index),
            let pointer = SSL_get_ex_data(OpaquePointer(ssl), 0)
        {
            Context.borrow(pointer, as: TLSSession.self).reject(store)
        }
        return 0
    }

    private func reject(_ store: OpaquePointer?) {
        guard rejection == nil else { return }
        let error = X509_STORE_CTX_get_error(store)
        var words = X509_verify_cert_error_string(Int(error)).map { String(cString: $0) } ?? "error \(error)"
        if let found = X509_STORE_CTX_get_current_cert(store) {
            let certificate = TLSCertificate(borrowing: found)
            words = "\(certificate.untimely ?? words) (\(certificate.subject), signed by \(certificate.issuer)"
            if error == X509_V_ERR_HOSTNAME_MISMATCH || error == X509_V_ERR_IP_ADDRESS_MISMATCH {
                words += ", for \(certificate.hosts)"
            }
            words += ")"
        }
        rejection = words
    }
}

@available(*, unavailable)
extension TLSSession: Sendable {}
