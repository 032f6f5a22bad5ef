import COpenSSL

/// The trust settings of a client: the certificates of the system, or those of one file. Any number of loops and
/// connections may share it. To read the system's certificates takes some milliseconds, so keep the object.
public final class TLSClient: Sendable, Hashable {
    let context: TLSContext
    /// False for a client that trusts one certificate, whatever host names it has.
    let checksHost: Bool

    /// Trusts the authorities in a PEM file and no others; without a file, those of the system.
    ///
    /// - Throws: `certificate` if the file cannot be read or contains no certificate.
    public init(authorities file: String? = nil) throws(NetError) {
        context = try TLSContext(TLS_client_method())
        checksHost = true
        if let file {
            try Self.trust(file, "the file of authorities", in: context)
        } else {
            SSL_CTX_set_default_verify_paths(context.pointer)
        }
        offerHTTP()
    }

    /// Trusts the node that has the certificate in a PEM file, whatever host names it has. Meant for a health check on
    /// the node's own machine, which connects to 127.0.0.1.
    ///
    /// - Throws: `certificate` if the file cannot be read or contains no certificate.
    public init(certificate file: String) throws(NetError) {
        context = try TLSContext(TLS_client_method())
        checksHost = false
        try Self.trust(file, "the certificate file", in: context)
        // The certificate is trusted although no authority has to sign it.
        X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context.pointer), UInt(X509_V_FLAG_PARTIAL_CHAIN))
        offerHTTP()
    }

    private static func trust(_ file: String, _ what: String, in context: TLSContext) throws(NetError) {
        try TLSFile.check(file, what)
        guard SSL_CTX_load_verify_file(context.pointer, file) == 1 else {
            throw TLSFailure.error("\(what) \(file) holds no certificate as PEM", .certificate)
        }
    }

    private func offerHTTP() {
        SSL_CTX_set_alpn_protos(context.pointer, TLSProtocolName.http, UInt32(TLSProtocolName.http.count))
    }

    /// True for the same object only: connections of one client are not used for another.
    public static func == (a: TLSClient, b: TLSClient) -> Bool { a === b }

    /// Hashes the identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
