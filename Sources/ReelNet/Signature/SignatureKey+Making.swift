import COpenSSL

extension SignatureKey {
    /// Returns a new key from the system's random numbers; nil if there are none.
    public static func random(_ algorithm: Algorithm) -> SignatureKey? {
        defer { ERR_clear_error() }
        switch algorithm {
        case .edDSA:
            guard let secret = randomBytes(32), let publicKey = publicKey(ofSecret: secret) else { return nil }
            return SignatureKey(.ed25519(publicKey: publicKey, secret: secret))
        case .es256: return randomP256()
        case .hs256: return randomBytes(32).flatMap { SignatureKey(.hmac(secret: $0)) }
        }
    }

    static func ed25519(_ publicKey: [UInt8], _ secret: [UInt8]?) -> OpaquePointer? {
        guard publicKey.count == 32 else { return nil }
        guard let secret else { return EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nil, publicKey, 32) }
        guard secret.count == 32, Self.publicKey(ofSecret: secret) == publicKey else { return nil }
        return EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nil, secret, 32)
    }

    static func p256(_ x: [UInt8], _ y: [UInt8], _ secret: [UInt8]?) -> OpaquePointer? {
        guard x.count == 32, y.count == 32, secret == nil || secret?.count == 32 else { return nil }
        let number = secret.flatMap { BN_bin2bn($0, 32, nil) }
        defer { BN_clear_free(number) }
        guard let builder = OSSL_PARAM_BLD_new() else { return nil }
        defer { OSSL_PARAM_BLD_free(builder) }
        let point: [UInt8] = [4] + x + y
        // The builder copies neither names nor values, so all of them outlive it.
        return point.withUnsafeBytes { point in
            OSSL_PARAM_BLD_push_utf8_string(builder, c("group"), c("P-256"), 0)
            OSSL_PARAM_BLD_push_octet_string(builder, c("pub"), point.baseAddress, point.count)
            if let number { OSSL_PARAM_BLD_push_BN(builder, c("priv"), number) }
            guard let parameters = OSSL_PARAM_BLD_to_param(builder) else { return nil }
            defer { OSSL_PARAM_free(parameters) }
            guard let context = EVP_PKEY_CTX_new_from_name(nil, "EC", nil) else { return nil }
            defer { EVP_PKEY_CTX_free(context) }
            var key: OpaquePointer?
            let selection = number == nil ? reel_EVP_PKEY_PUBLIC_KEY : reel_EVP_PKEY_KEYPAIR
            guard EVP_PKEY_fromdata_init(context) == 1,
                EVP_PKEY_fromdata(context, &key, selection, parameters) == 1
            else { return nil }
            guard isSound(key, hasSecret: number != nil) else {
                EVP_PKEY_free(key)
                return nil
            }
            return key
        }
    }

    /// Returns a C string that lives as long as the process.
    private static func c(_ text: StaticString) -> UnsafePointer<CChar> {
        UnsafeRawPointer(text.utf8Start).assumingMemoryBound(to: CChar.self)
    }

    private static func isSound(_ key: OpaquePointer?, hasSecret: Bool) -> Bool {
        guard let check = EVP_PKEY_CTX_new_from_pkey(nil, key, nil) else { return false }
        defer { EVP_PKEY_CTX_free(check) }
        return EVP_PKEY_public_check(check) == 1 && (!hasSecret || EVP_PKEY_pairwise_check(check) == 1)
    }

    private static func publicKey(ofSecret secret: [UInt8]) -> [UInt8]? {
        guard let key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nil, secret, 32) else { return nil }
        defer { EVP_PKEY_free(key) }
        var publicKey = [UInt8](repeating: 0, count: 32)
        var count = publicKey.count
        return EVP_PKEY_get_raw_public_key(key, &publicKey, &count) == 1 && count == 32 ? publicKey : nil
    }

    private static func randomBytes(_ count: Int) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        return RAND_priv_bytes(&bytes, Int32(count)) == 1 ? bytes : nil
    }

    private static func randomP256() -> SignatureKey? {
        guard let context = EVP_PKEY_CTX_new_from_name(nil, "EC", nil) else { return nil }
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1, EVP_PKEY_CTX_set_group_name(context, "P-256") == 1,
            EVP_PKEY_generate(context, &key) == 1
        else { return nil }
        defer { EVP_PKEY_free(key) }
        guard let x = number(key, OSSL_PKEY_PARAM_EC_PUB_X), let y = number(key, OSSL_PKEY_PARAM_EC_PUB_Y),
            let secret = number(key, OSSL_PKEY_PARAM_PRIV_KEY)
        else { return nil }
        return SignatureKey(.p256(x: x, y: y, secret: secret))
    }

    /// Returns a number of a key as 32 big-endian bytes.
    private static func number(_ key: OpaquePointer?, _ name: String) -> [UInt8]? {
        var number: OpaquePointer?
        guard EVP_PKEY_get_bn_param(key, name, &number) == 1 else { return nil }
        defer { BN_clear_free(number) }
        var bytes = [UInt8](repeating: 0, count: 32)
        return BN_bn2binpad(number, &bytes, 32) == 32 ? bytes : nil
    }
}
