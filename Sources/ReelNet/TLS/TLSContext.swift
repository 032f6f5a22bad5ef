import COpenSSL

/// What all TLS connections of one kind share: versions, ciphers, certificates. OpenSSL counts who uses it, and guards
/// it between threads.
final class TLSContext: @unchecked Sendable {
    let pointer: OpaquePointer

    /// The ciphers of TLS 1.2: all with forward secrecy and authenticated. TLS 1.3 has no others.
    private static let ciphers = "ECDHE+AESGCM:ECDHE+CHACHA20"

    /// `method` is `TLS_server_method()` or `TLS_client_method()`. Throws `tls` if OpenSSL cannot do what is needed.
    init(_ method: OpaquePointer?) throws(NetError) {
        guard let pointer = SSL_CTX_new(method) else { throw TLSFailure.error("starting TLS") }
        self.pointer = pointer
        guard reel_SSL_CTX_set_proto_versions(pointer, TLS1_2_VERSION, TLS1_3_VERSION) == 1,
            SSL_CTX_set_cipher_list(pointer, Self.ciphers) == 1
        else { throw TLSFailure.error("starting TLS") }
        SSL_CTX_set_options(pointer, reel_SSL_OP_STRICT)
        // An idle connection gives its record buffers back; sessions are resumed by tickets, which cost no memory here.
        reel_SSL_CTX_set_mode(pointer, Int(SSL_MODE_RELEASE_BUFFERS))
        reel_SSL_CTX_set_session_cache_mode(pointer, Int(SSL_SESS_CACHE_OFF))
        SSL_CTX_set_num_tickets(pointer, 1)
    }

    deinit {
        SSL_CTX_free(pointer)
    }
}

/// The protocol that both sides name (RFC 7301), as it goes over the wire.
enum TLSProtocolName {
    static let http: [UInt8] = [8] + "http/1.1".utf8
}

/// What OpenSSL has to say about a failure.
enum TLSFailure {
    /// An error with OpenSSL's words for the last one of this thread.
    static func error(_ action: String, _ code: NetError.Code = .tls) -> NetError {
        NetError(code, "\(action): \(reason() ?? "unknown failure")")
    }

    /// OpenSSL's words; nil if it has none. Forgets all errors of this thread.
    static func reason() -> String? {
        let code = ERR_peek_last_error()
        ERR_clear_error()
        guard code != 0 else { return nil }
        return ERR_reason_error_string(code).map { String(cString: $0) } ?? "error \(code)"
    }
}
