import COpenSSL

/// A key that verifies signatures and, with its secret half, makes them; OpenSSL does all arithmetic. The bytes of keys
/// and signatures have the forms of RFC 7518 and RFC 8037. Any thread may use it.
public final class SignatureKey: @unchecked Sendable {
    /// The signature algorithm.
    public enum Algorithm: String, Sendable, CaseIterable {
        /// Ed25519 (RFC 8037).
        case edDSA = "EdDSA"
        /// ECDSA on P-256 with SHA-256.
        case es256 = "ES256"
        /// HMAC with SHA-256: a holder of the key can both verify and sign.
        case hs256 = "HS256"
    }

    /// The bytes of a key.
    public enum Material: Equatable, Sendable {
        /// An Ed25519 key: 32 bytes each.
        case ed25519(publicKey: [UInt8], secret: [UInt8]?)
        /// A P-256 key: 32 bytes each, big-endian.
        case p256(x: [UInt8], y: [UInt8], secret: [UInt8]?)
        /// An HMAC key: at least 32 bytes.
        case hmac(secret: [UInt8])
    }

    /// The bytes of the key.
    public let material: Material
    /// OpenSSL's key; nil for HMAC.
    private let key: OpaquePointer?

    /// Creates a key. Returns nil if the bytes are not a valid key: a wrong length, not a point of the curve, or halves
    /// that do not match.
    public init?(_ material: Material) {
        self.material = material
        defer { ERR_clear_error() }
        switch material {
        case .ed25519(let publicKey, let secret):
            guard let key = Self.ed25519(publicKey, secret) else { return nil }
            self.key = key
        case .p256(let x, let y, let secret):
            guard let key = Self.p256(x, y, secret) else { return nil }
            self.key = key
        case .hmac(let secret):
            guard secret.count >= 32 else { return nil }
            key = nil
        }
    }

    deinit {
        EVP_PKEY_free(key)
    }

    /// The signature algorithm of the key.
    public var algorithm: Algorithm {
        switch material {
        case .ed25519: .edDSA
        case .p256: .es256
        case .hmac: .hs256
        }
    }

    // MARK: Checking

    /// The number of bytes in a signature.
    public var signatureCount: Int { algorithm == .hs256 ? 32 : 64 }

    /// True if `signature` is a signature of `message` by this key.
    public func verifies(_ signature: [UInt8], of message: [UInt8]) -> Bool {
        guard signature.count == signatureCount else { return false }
        defer { ERR_clear_error() }
        switch material {
        case .ed25519: return digestVerifies(nil, signature, message)
        case .p256:
            guard let der = Self.der(signature) else { return false }
            return digestVerifies(EVP_sha256(), der, message)
        case .hmac(let secret):
            guard let mine = Self.hmac(secret, message) else { return false }
            // A comparison in constant time, which does not reveal where the bytes differ.
            return CRYPTO_memcmp(mine, signature, mine.count) == 0
        }
    }

    private func digestVerifies(_ digest: OpaquePointer?, _ signature: [UInt8], _ message: [UInt8]) -> Bool {
        guard let context = EVP_MD_CTX_new() else { return false }
        defer { EVP_MD_CTX_free(context) }
        return EVP_DigestVerifyInit(context, nil, digest, nil, key) == 1
            && EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }

    // MARK: Signing

    /// Returns the signature of the message; nil without the secret half.
    public func signature(of message: [UInt8]) -> [UInt8]? {
        defer { ERR_clear_error() }
        switch material {
        case .ed25519(_, let secret): return secret == nil ? nil : digestSignature(nil, message)
        case .p256(_, _, let secret):
            return secret == nil ? nil : digestSignature(EVP_sha256(), message).flatMap(Self.raw)
        case .hmac(let secret): return Self.hmac(secret, message)
        }
    }

    private func digestSignature(_ digest: OpaquePointer?, _ message: [UInt8]) -> [UInt8]? {
        guard let context = EVP_MD_CTX_new() else { return nil }
        defer { EVP_MD_CTX_free(context) }
        var signature = [UInt8](repeating: 0, count: 128)
        var count = signature.count
        guard EVP_DigestSignInit(context, nil, digest, nil, key) == 1,
            EVP_DigestSign(context, &signature, &count, message, message.count) == 1
        else { return nil }
        return Array(signature.prefix(count))
    }

    private static func hmac(_ secret: [UInt8], _ message: [UInt8]) -> [UInt8]? {
        var code = [UInt8](repeating: 0, count: 32)
        var count = 0
        let done = EVP_Q_mac(
            nil,
            "HMAC",
            nil,
            "SHA256",
            nil,
            secret,
            secret.count,
            message,
            message.count,
            &code,
            code.count,
            &count
        )
        return done != nil && count == code.count ? code : nil
    }

    // MARK: The two forms of an ECDSA signature

    private static func der(_ raw: [UInt8]) -> [UInt8]? {
        guard let signature = ECDSA_SIG_new() else { return nil }
        defer { ECDSA_SIG_free(signature) }
        let (r, s) = raw.withUnsafeBufferPointer {
            (BN_bin2bn($0.baseAddress, 32, nil), BN_bin2bn($0.baseAddress! + 32, 32, nil))
        }
        guard ECDSA_SIG_set0(signature, r, s) == 1 else {
            BN_free(r)
            BN_free(s)
            return nil
        }
        var start: UnsafeMutablePointer<UInt8>?
        let count = i2d_ECDSA_SIG(signature, &start)
        guard count > 0, let start else { return nil }
        defer { CRYPTO_free(start, nil, 0) }
        return Array(UnsafeBufferPointer(start: start, count: Int(count)))
    }

    private static func raw(_ der: [UInt8]) -> [UInt8]? {
        der.withUnsafeBufferPointer { bytes in
            var start = bytes.baseAddress
            guard let signature = d2i_ECDSA_SIG(nil, &start, bytes.count) else { return nil }
            defer { ECDSA_SIG_free(signature) }
            var raw = [UInt8](repeating: 0, count: 64)
            let isWhole = raw.withUnsafeMutableBufferPointer {
                BN_bn2binpad(ECDSA_SIG_get0_r(signature), $0.baseAddress, 32) == 32
                    && BN_bn2binpad(ECDSA_SIG_get0_s(signature), $0.baseAddress! + 32, 32) == 32
            }
            return isWhole ? raw : nil
        }
    }
}
