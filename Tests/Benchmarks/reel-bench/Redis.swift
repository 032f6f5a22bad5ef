import Foundation

/// `redis-server --appendfsync always` as the log's peer: XADD, pipelined over a Unix socket.
enum Redis {
    /// Seconds for `count` entries of so many bytes, `depth` of them in flight.
    static func appends(depth: Int, count: Int, bytes: Int) throws -> Double {
        try withFolder { folder in
            let server = Process()
            server.executableURL = URL(fileURLWithPath: "/usr/bin/env")
            server.arguments = [
                "redis-server", "--port", "0", "--unixsocket", folder + "/redis.sock", "--save", "", "--appendonly",
                "yes", "--appendfsync", "always", "--dir", folder, "--auto-aof-rewrite-percentage", "0",
            ]
            server.standardOutput = FileHandle.nullDevice
            try server.run()
            Leftovers.started(server.processIdentifier)
            defer {
                // A server started from a thread of the pool inherits its blocked signals; this one cannot be blocked.
                kill(server.processIdentifier, SIGKILL)
                server.waitUntilExit()
                Leftovers.ended(server.processIdentifier)
            }
            let client = try connect(folder + "/redis.sock")
            defer { close(client) }
            let value = String(repeating: "x", count: bytes)
            let command = Array("*5\r\n$4\r\nXADD\r\n$1\r\ns\r\n$1\r\n*\r\n$1\r\nv\r\n$\(bytes)\r\n\(value)\r\n".utf8)
            return try seconds { try exchange(client, command, depth: depth, count: count) }
        }
    }

    private static func connect(_ path: String) throws -> Int32 {
        let client = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        for _ in 0..<500 {
            let result = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    Glibc.connect(client, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
            if result == 0 { return client }
            usleep(10_000)
        }
        throw BenchmarkError("redis-server does not answer: is it installed?")
    }

    /// Each reply sends the next command. A reply has two lines: its length, and the entry's number.
    private static func exchange(_ client: Int32, _ command: [UInt8], depth: Int, count: Int) throws {
        let commands = Array(repeatElement(command, count: depth).joined())
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        var lines = 0
        var sent = 0
        while lines < 2 * count {
            let sending = min(count, lines / 2 + depth) - sent
            var offset = 0
            while offset < sending * command.count {
                let written = commands.withUnsafeBytes {
                    write(client, $0.baseAddress! + offset, sending * command.count - offset)
                }
                guard written > 0 else { throw BenchmarkError("redis-server hung up") }
                offset += written
            }
            sent += sending
            let size = read(client, &buffer, buffer.count)
            guard size > 0, buffer[0] != UInt8(ascii: "-") else { throw BenchmarkError("redis-server hung up") }
            for byte in buffer[..<size] where byte == 10 { lines += 1 }
        }
    }
}
