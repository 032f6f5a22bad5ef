import Foundation
import TestSupport
import Testing

/// A proxy in front of a broker, which can hide a topic. The broker then seems not to know the topic yet, because the
/// proxy replaces its name in requests with the name of a topic that does not exist. All other bytes pass unchanged.
final class BrokerDoor: Sendable {
    /// The address of the proxy, `HOST:PORT`.
    let address: String
    private let listener: Int32

    /// Returns the name that replaces the name of the hidden topic.
    static func alias(of topic: String) -> String { topic.dropLast() + "x" }

    /// Starts the proxy. `onAnswer` is called on a thread of the proxy with bytes from the broker, after they were
    /// forwarded.
    init(before broker: String, hidden topic: String = "", onAnswer: @escaping @Sendable ([UInt8]) -> Void = { _ in })
        throws
    {
        let port = try #require(broker.split(separator: ":").last.flatMap { UInt16($0) })
        let listener = streamSocket()
        try #require(listener >= 0)
        self.listener = listener
        var own = Self.loopback(0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let (bound, named) = withUnsafeMutablePointer(to: &own) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                (bind(listener, $0, size), getsockname(listener, $0, &size))
            }
        }
        try #require(bound == 0 && named == 0 && listen(listener, 16) == 0)
        address = "127.0.0.1:\(UInt16(bigEndian: own.sin_port))"
        let hidden = Array(topic.utf8)
        Thread.detachNewThread {
            while true {
                let client = accept(listener, nil, nil)
                guard client >= 0 else { return }
                let server = Self.knock(at: port)
                Thread.detachNewThread { Self.pass(from: client, to: server, hiding: hidden) { _ in } }
                Thread.detachNewThread { Self.pass(from: server, to: client, then: onAnswer) }
            }
        }
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
    }

    private static func loopback(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        address.sin_port = port.bigEndian
        return address
    }

    private static func knock(at port: UInt16) -> Int32 {
        let server = streamSocket()
        var address = loopback(port)
        _ = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        return server
    }

    /// Forwards bytes until one side closes. A name is only replaced within one piece; requests are small enough for
    /// one piece.
    private static func pass(
        from source: Int32,
        to target: Int32,
        hiding topic: [UInt8] = [],
        then tell: ([UInt8]) -> Void
    ) {
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = recv(source, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            var piece = Array(buffer[..<count])
            while !topic.isEmpty, let found = piece.firstRange(of: topic) {
                piece[found.upperBound - 1] = UInt8(ascii: "x")
            }
            var rest = piece[...]
            while !rest.isEmpty {
                let sent = rest.withUnsafeBytes { send(target, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
                guard sent > 0 else { break }
                rest = rest.dropFirst(sent)
            }
            if !rest.isEmpty { break }
            tell(piece)
        }
        shutdown(source, Int32(SHUT_RDWR))
        shutdown(target, Int32(SHUT_RDWR))
    }
}
