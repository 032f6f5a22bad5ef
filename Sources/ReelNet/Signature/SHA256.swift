import COpenSSL

/// SHA-256 (FIPS 180-4), by OpenSSL.
public enum SHA256 {
    /// Returns the 32 bytes of the hash.
    public static func hash(_ message: some Sequence<UInt8>) -> [UInt8] {
        let bytes = Array(message)
        var hash = [UInt8](repeating: 0, count: 32)
        _ = COpenSSL.SHA256(bytes, bytes.count, &hash)
        return hash
    }
}
