import Foundation
import Synchronization

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A server on 127.0.0.1 that answers requests with arbitrary bytes, valid or not. After an answer, the connection
/// stays open until the client closes it.
package final class RogueServer: Sendable {
    /// The reaction of the server to a request.
    package enum Answer: Sendable {
        /// Sends these bytes.
        case bytes([UInt8])
        /// Sends the bytes, then the piece up to `atMost` times, for as long as the client reads.
        case endless([UInt8], piece: [UInt8], atMost: Int = .max)
        /// Sends the bytes, then the piece repeatedly, with a pause of `pauseMs` milliseconds before each.
        case dripping([UInt8], piece: [UInt8], pauseMs: UInt32)
        /// Sends these bytes, then closes its side of the connection.
        case cut([UInt8])

        /// Returns the answer that sends the text with the line ends of HTTP.
        package static func text(_ text: String) -> Answer { .bytes(RogueServer.http(text)) }
    }

    /// The port of the server.
    package let port: UInt16
    private let listener: Int32
    private let descriptors = Mutex<(open: Set<Int32>, isOver: Bool)>(([], false))
    private let asked = Mutex<[String]>([])

    /// Starts a server that calls `answer` with the head of each request.
    package init(_ answer: @escaping @Sendable (_ head: String) -> Answer) throws {
        let listener = streamSocket()
        self.listener = listener
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 64) == 0 && getsockname(listener, $0, &length) == 0
            }
        }
        port = UInt16(bigEndian: address.sin_port)
        guard isListening else { throw POSIXError(.EADDRINUSE) }
        Thread.detachNewThread { [weak self] in
            while true {
                let descriptor = accept(listener, nil, nil)
                guard descriptor >= 0 else { return }
                #if canImport(Darwin)
                var isOn: Int32 = 1
                setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &isOn, socklen_t(MemoryLayout<Int32>.size))
                #endif
                guard self?.keep(descriptor) == true else {
                    close(descriptor)
                    return
                }
                Thread.detachNewThread { [weak self] in
                    Self.serve(descriptor, { self?.note($0) }, answer)
                    self?.drop(descriptor)
                }
            }
        }
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
        let open = descriptors.withLock { state in
            state.isOver = true
            return state.open
        }
        for descriptor in open { shutdown(descriptor, Int32(SHUT_RDWR)) }
    }

    /// The heads of all requests that the server has received.
    package var requests: [String] { asked.withLock { $0 } }

    /// Returns the text as bytes, with each line feed replaced by CR LF, as HTTP requires.
    package static func http(_ text: String) -> [UInt8] {
        Array(text.split(separator: "\n", omittingEmptySubsequences: false).joined(separator: "\r\n").utf8)
    }

    private func note(_ head: String) { asked.withLock { $0.append(head) } }

    private func keep(_ descriptor: Int32) -> Bool {
        descriptors.withLock { state in
            if !state.isOver { state.open.insert(descriptor) }
            return !state.isOver
        }
    }

    private func drop(_ descriptor: Int32) {
        _ = descriptors.withLock { $0.open.remove(descriptor) }
        close(descriptor)
    }

    private static func serve(
        _ descriptor: Int32,
        _ note: (String) -> Void,
        _ answer: (String) -> Answer
    ) {
        var read: [UInt8] = []
        while let head = nextHead(descriptor, &read) {
            note(head)
            switch answer(head) {
            case .bytes(let bytes): guard write(bytes, to: descriptor) else { return }
            case .cut(let bytes):
                _ = write(bytes, to: descriptor)
                shutdown(descriptor, Int32(SHUT_WR))
                return
            case .endless(let bytes, let piece, let count):
                guard write(bytes, to: descriptor) else { return }
                var done = 0
                while done < count {
                    guard write(piece, to: descriptor) else { return }
                    done += 1
                }
            case .dripping(let bytes, let piece, let pauseMs):
                guard write(bytes, to: descriptor) else { return }
                repeat { usleep(pauseMs * 1_000) } while write(piece, to: descriptor)
                return
            }
        }
    }

    /// Returns the head of the next request and skips its body. Returns nil at the end of the connection.
    private static func nextHead(_ descriptor: Int32, _ read: inout [UInt8]) -> String? {
        let end = Array("\r\n\r\n".utf8)
        while true {
            if let range = read.firstRange(of: end) {
                let head = String(decoding: read[..<range.lowerBound], as: UTF8.self)
                let length =
                    head.split(separator: "\r\n").compactMap { line -> Int? in
                        let parts = line.split(separator: ":", maxSplits: 1)
                        guard parts.count == 2, parts[0].lowercased() == "content-length" else { return nil }
                        return Int(parts[1].filter { $0 != " " })
                    }.first ?? 0
                guard read.count >= range.upperBound + length else {
                    guard more(descriptor, &read) else { return nil }
                    continue
                }
                read.removeFirst(range.upperBound + length)
                return head
            }
            guard more(descriptor, &read) else { return nil }
        }
    }

    private static func more(_ descriptor: Int32, _ read: inout [UInt8]) -> Bool {
        var buffer = [UInt8](repeating: 0, count: 16_384)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        guard count > 0 else { return false }
        read += buffer[..<count]
        return true
    }

    private static func write(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
        #if canImport(Darwin)
        let flags: Int32 = 0
        #else
        let flags = Int32(MSG_NOSIGNAL)
        #endif
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes {
                send(descriptor, $0.baseAddress! + done, bytes.count - done, flags)
            }
            guard count > 0 else { return false }
            done += count
        }
        return true
    }
}
