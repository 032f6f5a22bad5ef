import COpenSSL

/// The source and target of OpenSSL's reads and writes, in place of a socket. Received bytes are lent for the time of a
/// call, never copied; bytes to send gather in an array. So an idle connection holds no buffer here.
final class TLSBytes {
    /// The bytes from the peer that OpenSSL has not read yet.
    var input = UnsafeRawBufferPointer(start: nil, count: 0)
    /// The bytes that have to go to the peer.
    private(set) var output: [UInt8] = []

    /// Returns the bytes that have to go to the peer, and removes them here.
    func takeOutput() -> [UInt8] {
        defer { output = [] }
        return output
    }

    /// Returns OpenSSL's side. The owner of the BIO must not outlive this object.
    func makeBIO() -> OpaquePointer? {
        guard let method = Self.method.pointer, let bio = BIO_new(method) else { return nil }
        BIO_set_data(bio, Unmanaged.passUnretained(self).toOpaque())
        BIO_set_init(bio, 1)
        return bio
    }

    private struct Method: @unchecked Sendable {
        let pointer: OpaquePointer?
    }

    private static let method: Method = {
        let method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "reel")
        BIO_meth_set_read_ex(method, read)
        BIO_meth_set_write_ex(method, write)
        BIO_meth_set_ctrl(method) { _, command, _, _ in command == BIO_CTRL_FLUSH ? 1 : 0 }
        return Method(pointer: method)
    }()

    private static let read:
        @convention(c) (
            OpaquePointer?, UnsafeMutablePointer<CChar>?, Int, UnsafeMutablePointer<Int>?
        ) -> Int32 = { bio, target, wanted, done in
            let bytes = Context.borrow(BIO_get_data(bio), as: TLSBytes.self)
            let count = min(wanted, bytes.input.count)
            reel_BIO_clear_retry_flags(bio)
            guard count > 0, let target, let start = bytes.input.baseAddress else {
                reel_BIO_set_retry_read(bio)
                return 0
            }
            UnsafeMutableRawPointer(target).copyMemory(from: start, byteCount: count)
            bytes.input = UnsafeRawBufferPointer(rebasing: bytes.input[count...])
            done?.pointee = count
            return 1
        }

    private static let write:
        @convention(c) (
            OpaquePointer?, UnsafePointer<CChar>?, Int, UnsafeMutablePointer<Int>?
        ) -> Int32 = { bio, source, count, done in
            let bytes = Context.borrow(BIO_get_data(bio), as: TLSBytes.self)
            bytes.output.append(contentsOf: UnsafeRawBufferPointer(start: source, count: count))
            done?.pointee = count
            return 1
        }
}
