import COpenSSL

/// Whom a client believes: the certificates of the system, or those of one file. For any number of loops and
/// connections; reading the system's takes some milliseconds, so keep it.
public final class TLSClient: Sendable, Hashable {
    let context: TLSContext

    /// Trusts the authorities in the file, as PEM, and no others; without one those of the system. Throws
    /// `certificate` if the file cannot be read or holds none.
    public init(authorities file: String? = nil) throws(NetError) {
        context = try TLSContext(TLS_client_method())
        if let file {
            try TLSFile.check(file, "the file of authorities")
            guard SSL_CTX_load_verify_file(context.pointer, file) == 1 else {
                throw TLSFailure.error("the file of authorities \(file) holds no certificate as PEM", .certificate)
            }
        } else {
            SSL_CTX_set_default_verify_paths(context.pointer)
        }
        SSL_CTX_set_alpn_protos(context.pointer, TLSProtocolName.http, UInt32(TLSProtocolName.http.count))
    }

    /// Each is equal to itself alone: connections of one are not used for the other.
    public static func == (a: TLSClient, b: TLSClient) -> Bool { a === b }

    /// Hashes the identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
