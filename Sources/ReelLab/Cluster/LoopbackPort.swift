import Glibc

/// Free ports, for servers that cannot choose a free port themselves.
package enum LoopbackPort {
    /// Returns `count` different ports of the loopback that are free now.
    ///
    /// The ports are below the range that the kernel uses for outgoing connections. So a server that is down for a
    /// while finds its port still free. A client that connects meanwhile cannot be given that port and reach itself.
    package static func free(_ count: Int) throws(ChildProcess.Failure) -> [Int] {
        var held: [Int32] = []
        defer { for socket in held { close(socket) } }
        var ports: [Int] = []
        for _ in 0..<1_000 where ports.count < count {
            let port = Int.random(in: 20_000..<32_000)
            guard !ports.contains(port), let socket = bound(to: port) else { continue }
            held.append(socket)
            ports.append(port)
        }
        guard ports.count == count else {
            throw ChildProcess.Failure(description: "no \(count) free ports between 20000 and 32000")
        }
        return ports
    }

    /// Returns a socket that holds a port of the loopback and accepts no connection; nil: the port is in use.
    package static func bound(to port: Int) -> Int32? {
        let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard socket >= 0 else { return nil }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        if result == 0 { return socket }
        close(socket)
        return nil
    }
}
