import COpenSSL

/// The shared state of all TLS connections of one kind: versions, ciphers, certificates. OpenSSL counts the references
/// to it and synchronizes its use between threads.
final class TLSContext: @unchecked Sendable {
    let pointer: OpaquePointer

    /// The ciphers of TLS 1.2: all are authenticated and have forward secrecy. TLS 1.3 has no others.
    private static let ciphers = "ECDHE+AESGCM:ECDHE+CHACHA20"

    /// Creates a context. `method` is `TLS_server_method()` or `TLS_client_method()`.
    ///
    /// - Throws: `tls` if OpenSSL does not support the settings.
    init(_ method: OpaquePointer?) throws(NetError) {
        guard let pointer = SSL_CTX_new(method) else { throw TLSFailure.error("starting TLS") }
        self.pointer = pointer
        guard reel_SSL_CTX_set_proto_versions(pointer, TLS1_2_VERSION, TLS1_3_VERSION) == 1,
            SSL_CTX_set_cipher_list(pointer, Self.ciphers) == 1
        else { throw TLSFailure.error("starting TLS") }
        SSL_CTX_set_options(pointer, reel_SSL_OP_STRICT)
        // An idle connection releases its record buffers. Sessions are resumed by tickets, which cost no memory here.
        reel_SSL_CTX_set_mode(pointer, Int(SSL_MODE_RELEASE_BUFFERS))
        reel_SSL_CTX_set_session_cache_mode(pointer, Int(SSL_SESS_CACHE_OFF))
        SSL_CTX_set_num_tickets(pointer, 1)
    }

    deinit {
        SSL_CTX_free(pointer)
    }
}

/// The protocol name that both sides send (RFC 7301), in its wire format.
enum TLSProtocolName {
    static let http: [UInt8] = [8] + "http/1.1".utf8
}

/// The texts of OpenSSL's errors.
enum TLSFailure {
    /// Returns an error with OpenSSL's text for the last error of this thread.
    static func error(_ action: String, _ code: NetError.Code = .tls) -> NetError {
        NetError(code, "\(action): \(reason() ?? "unknown failure")")
    }

    /// Returns OpenSSL's text for the last error of this thread; nil if there is none. Clears all errors of this
    /// thread.
    static func reason() -> String? {
        let code = ERR_peek_last_error()
        ERR_clear_error()
        guard code != 0 else { return nil }
        return ERR_reason_error_string(code).map { String(cString: $0) } ?? "error \(code)"
    }
}
