import Foundation
import Testing

@testable import ReelNet

/// A plain blocking socket, for behavior that no correct client has.
final class RawClient: Sendable {
    private let descriptor: Int32

    /// Connects to the address.
    ///
    /// - Parameter isCramped: True for small kernel buffers.
    init(_ address: SocketAddress, isCramped: Bool = false) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        if isCramped {
            set(Int32(SOL_SOCKET), SO_RCVBUF, Int32(32 << 10))
            set(Int32(IPPROTO_TCP), TCP_MAXSEG, Int32(500))
        }
        let descriptor = descriptor
        let status = address.withSockaddr { connect(descriptor, $0, $1) }
        try #require(status == 0)
    }

    deinit { close(descriptor) }

    private func set<Value>(_ level: Int32, _ option: Int32, _ value: Value) {
        _ = withUnsafeBytes(of: value) {
            setsockopt(descriptor, level, option, $0.baseAddress, socklen_t($0.count))
        }
    }

    func send(_ text: String) { send(Array(text.utf8)) }

    func send(_ bytes: [UInt8]) {
        #expect(Foundation.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count)
    }

    /// Reads at most `count` bytes and returns their number; 0 at the end of the connection.
    func read(_ count: Int) -> Int {
        var buffer = [UInt8](repeating: 0, count: count)
        while true {
            let found = recv(descriptor, &buffer, count, 0)
            // A signal that stops and continues the process does not end the connection.
            if found >= 0 || errno != EINTR { return max(0, found) }
        }
    }

    /// Reads until the other side ends, and returns the text.
    func readAll() -> String { String(decoding: readAllBytes(), as: UTF8.self) }

    /// Reads until the other side ends, and returns the bytes.
    func readAllBytes() -> [UInt8] {
        var (all, buffer): ([UInt8], [UInt8]) = ([], [UInt8](repeating: 0, count: 65_536))
        while true {
            let found = recv(descriptor, &buffer, buffer.count, 0)
            if found < 0, errno == EINTR { continue }
            guard found > 0 else { return all }
            all += buffer.prefix(found)
        }
    }

    /// Makes the next close of the socket reset the connection, as a machine that loses power does.
    func breaksOff() { set(Int32(SOL_SOCKET), SO_LINGER, linger(l_onoff: 1, l_linger: 0)) }
}
