import Foundation

/// `redis-server` on a Unix socket in this folder, with one client.
final class Redis {
    private let server = Process()
    private let client: Int32

    /// Starts it; `isDurable`: an append is answered when it is on the disk.
    init(in folder: String, isDurable: Bool) throws {
        server.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        let file = ["--appendonly", isDurable ? "yes" : "no", "--appendfsync", "always"]
        server.arguments =
            ["redis-server", "--port", "0", "--unixsocket", folder + "/redis.sock", "--save", "", "--dir", folder]
            + file + ["--auto-aof-rewrite-percentage", "0"]
        server.standardOutput = FileHandle.nullDevice
        try server.run()
        Leftovers.started(server.processIdentifier)
        client = try Self.connect(folder + "/redis.sock")
    }

    deinit {
        close(client)
        // A server started from a thread of the pool inherits its blocked signals; this one cannot be blocked.
        kill(server.processIdentifier, SIGKILL)
        server.waitUntilExit()
        Leftovers.ended(server.processIdentifier)
    }

    /// Seconds for `count` durable entries of so many bytes, `depth` of them in flight.
    static func appends(depth: Int, count: Int, bytes: Int) throws -> Double {
        try withFolder { folder in
            let redis = try Redis(in: folder, isDurable: true)
            return try seconds { try redis.append(count, bytes: bytes, depth: depth) }
        }
    }

    /// Adds so many entries of so many bytes to the stream `s`.
    func append(_ count: Int, bytes: Int, depth: Int) throws {
        let value = "#" + String(repeating: "x", count: bytes - 1)
        let command = Array("*5\r\n$4\r\nXADD\r\n$1\r\ns\r\n$1\r\n*\r\n$1\r\nv\r\n$\(bytes)\r\n\(value)\r\n".utf8)
        try exchange(command, depth: depth, count: count)
    }

    /// Seconds in which one client reads all of so many entries, a thousand at a time.
    func read(_ count: Int) throws -> Double {
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        var last = "0"
        return try seconds {
            for start in stride(from: 0, to: count, by: 1_000) {
                let size = min(1_000, count - start)
                let command =
                    "*6\r\n$5\r\nXREAD\r\n$5\r\nCOUNT\r\n$\(String(size).count)\r\n\(size)\r\n$7\r\nSTREAMS\r\n$1\r\ns"
                    + "\r\n$\(last.count)\r\n\(last)\r\n"
                guard command.utf8.count == write(client, command, command.utf8.count) else {
                    throw BenchmarkError("redis-server hung up")
                }
                last = try take(size, &buffer)
            }
        }
    }

    /// Reads entries until so many have come whole; returns the number of the last.
    private func take(_ count: Int, _ buffer: inout [UInt8]) throws -> String {
        var (entries, have) = (0, 0)
        while true {
            let size = Glibc.read(client, &buffer[have], buffer.count - have)
            guard size > 0, buffer[0] != UInt8(ascii: "-") else { throw BenchmarkError("redis-server hung up") }
            for byte in buffer[have..<(have + size)] where byte == UInt8(ascii: "#") { entries += 1 }
            have += size
            guard entries == count, buffer[(have - 2)..<have].elementsEqual([13, 10]) else { continue }
            // The entry: *2, its number, *2, the name, the value.
            let lines = String(decoding: buffer[(have - 400)..<have], as: UTF8.self).split(separator: "\r\n")
            return String(lines[lines.count - 6])
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
                guard written > 0 else { throw BenchmarkError("redis-server hung up") }
                offset += written
            }
            sent += sending
            let size = Glibc.read(client, &buffer, buffer.count)
            guard size > 0, buffer[0] != UInt8(ascii: "-") else { throw BenchmarkError("redis-server hung up") }
            for byte in buffer[..<size] where byte == 10 { lines += 1 }
        }
    }
}
