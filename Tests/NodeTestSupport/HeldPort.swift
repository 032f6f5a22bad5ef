import Foundation
import TestSupport
import Testing

/// A port of the loopback that is reserved for a process that listens there, now or later. The port is bound here too,
/// and never listened on. No other process gets it, and connections are refused until a process listens.
package final class HeldPort: Sendable {
    /// The number of the port.
    package let number: UInt16
    private let descriptor: Int32

    /// Reserves a free port.
    package init() throws {
        let descriptor = streamSocket()
        try #require(descriptor >= 0)
        self.descriptor = descriptor
        // Without this option no process could listen on the port.
        var on: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let (bound, named) = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                (bind(descriptor, $0, size), getsockname(descriptor, $0, &size))
            }
        }
        try #require(bound == 0 && named == 0)
        number = UInt16(bigEndian: address.sin_port)
    }

    deinit { close(descriptor) }
}
