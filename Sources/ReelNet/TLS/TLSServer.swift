import COpenSSL
import Synchronization

/// The certificate and the key of a server, for any number of loops. Both come from files that can be read again
/// while it serves: connections that are open keep what they have, new ones take the new.
public final class TLSServer: Sendable, Hashable {
    /// The file with the certificate and those that lead from it to a known authority, in this order, as PEM.
    public let certificateFile: String
    /// The file with the private key, as PEM, without a passphrase.
    public let keyFile: String
    private let context: Mutex<TLSContext>

    /// Reads the files. Throws `certificate`, with the file and what is wrong with it: it cannot be read, holds no
    /// certificate or key, does not fit the other one, or the certificate does not hold today.
    public init(certificateFile: String, keyFile: String) throws(NetError) {
        self.certificateFile = certificateFile
        self.keyFile = keyFile
        context = Mutex(try Self.read(certificateFile, keyFile))
    }

    /// Reads the files again. Throws as `init` does; then all stays as it is.
    public func reload() throws(NetError) {
        let fresh = try Self.read(certificateFile, keyFile)
        context.withLock { $0 = fresh }
    }

    /// When the certificate expires, in seconds of the Unix epoch; 0: it does not say.
    public var expiresAt: Int64 {
        context.withLock { context in
            guard let found = SSL_CTX_get0_certificate(context.pointer) else { return 0 }
            return TLSCertificate(borrowing: found).expiresAt
        }
    }

    /// Each is equal to itself alone.
    public static func == (a: TLSServer, b: TLSServer) -> Bool { a === b }

    /// Hashes the identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }

    /// What new connections take.
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
        // OpenSSL would ask for the passphrase on the terminal.
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

    /// A client that names protocols has to name ours; one that names none is served. OpenSSL has checked that the
    /// lengths add up.
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
