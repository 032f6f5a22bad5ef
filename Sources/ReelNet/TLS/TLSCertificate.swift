import COpenSSL
import Glibc

/// The facts of a certificate for error messages.
struct TLSCertificate {
    private let pointer: OpaquePointer

    /// Borrows OpenSSL's certificate, which must outlive this value.
    init(borrowing pointer: OpaquePointer) {
        self.pointer = pointer
    }

    /// The subject, such as `CN=reel.example`.
    var subject: String {
        Self.text { X509_NAME_print_ex($0, X509_get_subject_name(pointer), 0, reel_XN_FLAG_RFC2253) }
    }

    /// The issuer, which signed the certificate.
    var issuer: String { Self.text { X509_NAME_print_ex($0, X509_get_issuer_name(pointer), 0, reel_XN_FLAG_RFC2253) } }

    /// The time of expiry in seconds of the Unix epoch; 0 if it cannot be read.
    var expiresAt: Int64 {
        var parts = tm()
        guard let end = X509_get0_notAfter(pointer), ASN1_TIME_to_tm(end, &parts) == 1 else { return 0 }
        return Int64(timegm(&parts))
    }

    /// The reason for which the certificate is not valid now: `expired on …`, `is not valid before …`. Nil if the time
    /// is valid.
    var untimely: String? {
        if let end = X509_get0_notAfter(pointer), X509_cmp_current_time(end) < 0 {
            return "expired on \(Self.text { ASN1_TIME_print($0, end) })"
        }
        if let start = X509_get0_notBefore(pointer), X509_cmp_current_time(start) > 0 {
            return "is not valid before \(Self.text { ASN1_TIME_print($0, start) })"
        }
        return nil
    }

    /// The host names that the certificate is for, separated by commas.
    var hosts: String {
        guard let pointer = X509_get_ext_d2i(pointer, NID_subject_alt_name, nil, nil) else { return "none" }
        let names = OpaquePointer(pointer)
        defer { GENERAL_NAMES_free(names) }
        var hosts: [String] = []
        for index in 0..<OPENSSL_sk_num(names) {
            guard let name = OPENSSL_sk_value(names, index) else { continue }
            hosts.append(Self.text { GENERAL_NAME_print($0, name.assumingMemoryBound(to: GENERAL_NAME.self)) })
        }
        return hosts.joined(separator: ", ")
    }

    /// Returns the text that an OpenSSL function prints.
    private static func text(_ print: (OpaquePointer?) -> Int32) -> String {
        guard let bio = BIO_new(BIO_s_mem()) else { return "" }
        defer { BIO_free(bio) }
        _ = print(bio)
        var bytes = [UInt8](repeating: 0, count: 1024)
        let count = BIO_read(bio, &bytes, Int32(bytes.count))
        return String(decoding: bytes.prefix(Int(max(0, count))), as: UTF8.self)
    }
}
