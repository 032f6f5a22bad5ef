import COpenSSL

/// Whom a client believes: the certificates of the system, or those of one file. For any number of loops and
/// connections; reading the system's takes some milliseconds, so keep it.
public final class TLSClient: Sendable, Hashable {
    let context: TLSContext
    /// False for a client that knows the certificate itself, whatever names stand in it.
    let checksHost: Bool

    /// Trusts the authorities in the file, as PEM, and no others; without one those of the system. Throws
    /// `certificate` if the file cannot be read or holds none.
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

    /// Trusts the node that has the certificate in the file, as PEM, whatever names stand in it: for a health check on
    /// the node's own machine, which reaches it at 127.0.0.1. Throws `certificate` if the file cannot be read or holds
    /// none.
    public init(certificate file: String) throws(NetError) {
        context = try TLSContext(TLS_client_method())
        checksHost = false
        try Self.trust(file, "the certificate file", in: context)
        // The certificate counts though nobody vouches for it.
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

    /// Each is equal to itself alone: connections of one are not used for the other.
    public static func == (a: TLSClient, b: TLSClient) -> Bool { a === b }

    /// Hashes the identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
