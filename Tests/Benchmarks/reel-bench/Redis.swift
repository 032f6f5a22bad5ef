import CFanOutFloor
import Foundation
import ReelLab

/// A `redis-server` with one client, on a Unix socket in this folder and on a port of the loopback.
final class Redis {
    private let server = Process()
    private let port: Int32
    private let client: Int32

    /// Starts the server. If `isDurable` is true, it answers an append when the entry is on the disk.
    init(in folder: String, isDurable: Bool) throws {
        port = try Int32(LoopbackPort.free(1)[0])
        server.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        let file = ["--appendonly", isDurable ? "yes" : "no", "--appendfsync", "always"]
        server.arguments =
            ["redis-server", "--bind", "127.0.0.1", "--port", "\(port)", "--unixsocket", folder + "/redis.sock"]
            + ["--save", "", "--dir", folder] + file + ["--auto-aof-rewrite-percentage", "0"]
        server.standardOutput = FileHandle.nullDevice
        try server.run()
        Leftovers.started(server.processIdentifier)
        client = try Self.connect(folder + "/redis.sock")
    }

    deinit {
        close(client)
        // A server that is started from a pool thread inherits the blocked signals of that thread. SIGKILL cannot be
        // blocked.
        kill(server.processIdentifier, SIGKILL)
        server.waitUntilExit()
        Leftovers.ended(server.processIdentifier)
    }

    /// Returns the seconds for `count` durable entries of `bytes` bytes, with `depth` in flight.
    static func appends(depth: Int, count: Int, bytes: Int) throws -> Double {
        try withFolder { folder in
            let redis = try Redis(in: folder, isDurable: true)
            return try seconds { try redis.append(count, bytes: bytes, depth: depth) }
        }
    }

    /// Adds `count` entries of `bytes` bytes to the stream `s`.
    private func append(_ count: Int, bytes: Int, depth: Int) throws {
        let value = String(repeating: "x", count: bytes)
        let command = Array("*5\r\n$4\r\nXADD\r\n$1\r\ns\r\n$1\r\n*\r\n$1\r\nv\r\n$\(bytes)\r\n\(value)\r\n".utf8)
        try exchange(command, depth: depth, count: count)
    }

    /// Adds `count` entries of 200 bytes to the stream `s`, for `replay`.
    func fill(_ count: Int) throws {
        guard floor_redis_fill(port, Int64(count)) == 0 else { throw BenchmarkError("redis-server disconnected") }
    }

    /// Returns the seconds in which one client reads `count` entries.
    func replay(_ count: Int) throws -> Double {
        let seconds = floor_redis_replay(port, Int64(count))
        guard seconds > 0 else { throw BenchmarkError("redis-server disconnected") }
        return seconds
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

    /// Sends a command for each reply. A reply has two lines: its length, and the number of the entry.
    private func exchange(_ command: [UInt8], depth: Int, count: Int) throws {
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
                guard written > 0 else { throw BenchmarkError("redis-server disconnected") }
                offset += written
            }
            sent += sending
            let size = Glibc.read(client, &buffer, buffer.count)
            guard size > 0, buffer[0] != UInt8(ascii: "-") else { throw BenchmarkError("redis-server disconnected") }
            for byte in buffer[..<size] where byte == 10 { lines += 1 }
        }
    }
}
