import COpenSSL
import Synchronization

/// The certificate and the key of a server, for any number of loops. Both files can be read again while the server
/// runs: open connections keep the old certificate, new ones use the new one. Any thread may use it.
public final class TLSServer: Sendable, Hashable {
    /// The PEM file with the certificate, followed by the chain that leads to a known authority.
    public let certificateFile: String
    /// The PEM file with the private key, without a passphrase.
    public let keyFile: String
    private let context: Mutex<TLSContext>

    /// Reads the files.
    ///
    /// - Throws: `certificate`, with the file and the reason: it cannot be read, it contains no certificate or key, or
    ///   certificate and key do not match. A certificate that is not valid today is an error too.
    public init(certificateFile: String, keyFile: String) throws(NetError) {
        self.certificateFile = certificateFile
        self.keyFile = keyFile
        context = Mutex(try Self.read(certificateFile, keyFile))
    }

    /// Reads the files again. From any thread.
    ///
    /// - Throws: The errors of `init`; the old certificate and key then stay in use.
    public func reload() throws(NetError) {
        let fresh = try Self.read(certificateFile, keyFile)
        context.withLock { $0 = fresh }
    }

    /// The certificate's time of expiry in seconds of the Unix epoch; 0 if it cannot be read.
    public var expiresAt: Int64 {
        context.withLock { context in
            guard let found = SSL_CTX_get0_certificate(context.pointer) else { return 0 }
            return TLSCertificate(borrowing: found).expiresAt
        }
    }

    /// True for the same object only.
    public static func == (a: TLSServer, b: TLSServer) -> Bool { a === b }

    /// Hashes the identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }

    /// The context for new connections.
    var current: TLSContext { context.withLock { $0 } }

    private static func read(_ certificateFile: String, _ keyFile: String) throws(NetError) -> TLSContext {
        let context = try TLSContext(TLS_server_method())
        try TLSFile.check(certificateFile, "the certificate file")
        guard SSL_CTX_use_certificate_chain_file(context.pointer, certificateFile) == 1 else {
            throw TLSFailure.error("the certificate file \(certificateFile) holds no certificate as PEM", .certificate)
        }
        if let found = SSL_CTX_get0_certificate(context.pointer) {
            let certificate = TLSCertificate(borrowing: found)
            if let untimely = certificate.untimely {
                throw NetError(
                    .certificate,
                    "the certificate \(certificate.subject) of the file \(certificateFile) \(untimely)"
                )
            }
        }
        try readKey(keyFile, certificateFile, context)
        SSL_CTX_set_alpn_select_cb(context.pointer, selectProtocol, nil)
        return context
    }

    private static func readKey(
        _ keyFile: String,
        _ certificateFile: String,
        _ context: TLSContext
    ) throws(NetError) {
        try TLSFile.check(keyFile, "the key file")
        // Without this callback OpenSSL would ask for the passphrase on the terminal.
        SSL_CTX_set_default_passwd_cb(context.pointer) { _, _, _, _ in -1 }
        guard let bio = BIO_new_file(keyFile, "r") else {
            throw TLSFailure.error("the key file \(keyFile) cannot be read", .certificate)
        }
        defer { BIO_free(bio) }
        guard let key = PEM_read_bio_PrivateKey(bio, nil, { _, _, _, _ in -1 }, nil) else {
            throw TLSFailure.error(
                "the key file \(keyFile) holds no private key as PEM without a passphrase",
                .certificate
            )
        }
        defer { EVP_PKEY_free(key) }
        guard X509_check_private_key(SSL_CTX_get0_certificate(context.pointer), key) == 1,
            SSL_CTX_use_PrivateKey(context.pointer, key) == 1
        else {
            ERR_clear_error()
            throw NetError(
                .certificate,
                "the key of the file \(keyFile) is not the one of the certificate in \(certificateFile)"
            )
        }
    }

    /// Accepts a client that names HTTP/1.1 or names no protocol, and refuses any other client. OpenSSL has checked the
    /// lengths in the list.
    private static let selectProtocol: SSL_CTX_alpn_select_cb_func = { _, chosen, length, offered, count, _ in
        let names = UnsafeBufferPointer(start: offered, count: Int(count))
        var index = 0
        while index < names.count {
            let end = min(index + 1 + Int(names[index]), names.count)
            if names[index..<end].elementsEqual(TLSProtocolName.http) {
                chosen?.pointee = names.baseAddress.map { $0 + index + 1 }
                length?.pointee = names[index]
                return SSL_TLSEXT_ERR_OK
            }
            index = end
        }
        return SSL_TLSEXT_ERR_ALERT_FATAL
    }
}
