import Foundation
import ReelCore
import ReelLab
import ReelLog
import ReelNet
import Synchronization

/// Measures devices that reconnect to a gateway that has just started. The records that they missed are not in its
/// memory, and only a few of these records belong to their streams.
enum GatewayComebacksBenchmark {
    private static let (records, clients, subscriptions) = (400_000, 1_000, 10)
    /// One of this number of records belongs to a stream of the clients.
    private static let sparse = 10

    @Sendable static func run() async throws -> [Measured] {
        raiseDescriptorLimit()
        return try await withFolder { folder in
            let log = try SQLiteLog(path: folder + "/log.sqlite", partitions: 1)
            try fill(log)
            log.close()
            var (seconds, pages, bytes): ([Double], [Double], [Double]) = ([], [], [])
            for _ in 0..<3 {
                try await withReel(["gateway", "--log", "sqlite:\(folder)/log.sqlite"], in: folder) { node in
                    try await node.waitUntilReady()
                    let pid = node.process.pid
                    let crowd = try await Crowd(clients, at: node.port)
                    let before = try Usage.residentBytes(of: pid)
                    try Usage.forgetPeak(of: pid)
                    let start = ContinuousClock.now
                    try await crowd.subscribe(to: subscriptions, of: clients, head: Seq(records - 1))
                    seconds.append((ContinuousClock.now - start).seconds)
                    bytes.append(Double(try Usage.peakBytes(of: pid) - before) / Double(1 << 20))
                    pages.append(try await node.metric(#"reel_gateway_pages_total{source="read"}"#))
                }
            }
            let work = "\(clients) clients, \(subscriptions) sparse streams each, reconnect, \(records) records missed"
            return [
                Measured(work: "\(work): time until all are live", value: median(seconds), unit: "s"),
                Measured(work: "\(clients) reconnecting clients: reads of the log", value: median(pages), unit: ""),
                Measured(work: "\(clients) reconnecting clients: additional memory", value: median(bytes), unit: "MiB"),
            ]
        }
    }

    private static func name(_ number: Int) -> StreamName { StreamName("sparse-\(number)")! }

    /// Fills the log. The witness of the last record proves that its gateway had read all earlier records, so a gateway
    /// that starts keeps only a few records in memory.
    private static func fill(_ log: SQLiteLog) throws {
        let values = BenchEvents.inserts(1_000) + BenchEvents.updates(records - 1_000, of: 1_000)
        let appends = values.enumerated().map { index, value in
            let stream = name(index / sparse % clients)
            return LogAppend(key: index % sparse == 0 ? stream.key : Array("bench".utf8), value: value)
        }
        try log.fill(appends: appends.dropLast())
        let before = try log.read(0, from: Seq(records - 2), to: Seq(records - 2), bytes: 1)
        guard var last = appends.last, let entry = before.entries.first else { throw BenchmarkError("an empty log") }
        last.witness = before.witness(of: entry)
        try log.fill(appends: [last])
    }

    /// Clients that share one event loop.
    private final class Crowd: Sendable {
        private let loop: EventLoop
        private let members: LoopBound<[Member]>

        init(_ count: Int, at port: Int32?) async throws {
            guard let port else { throw BenchmarkError("found no port") }
            let loop = try EventLoop()
            self.loop = loop
            members = try loop.sync { LoopBound((0..<count).map { _ in Member() }, on: loop) }
            for index in 0..<count {
                try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                    loop.execute { [members] in
                        members.value[index].connect(on: loop, port: UInt16(clamping: port)) {
                            continuation.resume(with: $0)
                        }
                    }
                }
            }
        }

        deinit { loop.stop() }

        /// Subscribes each client to `count` of `all` streams, and returns when all streams are proven up to the head.
        func subscribe(to count: Int, of all: Int, head: Seq) async throws {
            let left = Mutex(try loop.sync { [members] in members.value.count })
            let failure: String? = await withCheckedContinuation { continuation in
                let done: @Sendable (String?) -> Void = { reason in
                    let isLast = left.withLock { left in
                        guard left > 0 else { return false }
                        left = reason == nil ? left - 1 : 0
                        return left == 0
                    }
                    if isLast { continuation.resume(returning: reason) }
                }
                loop.execute { [members] in
                    for (index, member) in members.value.enumerated() {
                        member.subscribe((0..<count).map { name((index + $0) % all) }, head: head, done: done)
                    }
                }
            }
            if let failure { throw BenchmarkError(failure) }
        }
    }

    private final class Member: WebSocketHandler {
        private var socket: WebSocket?
        private var opened: ((Result<Void, any Error>) -> Void)?
        private var done: ((String?) -> Void)?
        private var proven: [StreamName: Seq] = [:]
        private var head: Seq = 0

        func connect(on loop: EventLoop, port: UInt16, then: @escaping (Result<Void, any Error>) -> Void) {
            opened = then
            let target = WebSocketTarget(host: "127.0.0.1", port: port, path: "/v1/socket", subprotocols: ["reel.v1"])
            WebSocketClient.connect(on: loop, to: target, handler: self) { then(.failure($0)) }
        }

        func opened(_ socket: WebSocket) {
            self.socket = socket
            socket.send(text: Array(#"{"t":"hello","client":"bench/1"}"#.utf8))
            opened?(.success(()))
            opened = nil
        }

        func subscribe(_ streams: [StreamName], head: Seq, done: @escaping (String?) -> Void) {
            (self.head, self.done) = (head, done)
            for stream in streams {
                proven[stream] = Seq.none
                socket?.send(text: ClientFrame(.subscribe(.init(stream: stream, position: .after(.none)))).encoded())
            }
        }

        func received(text: [UInt8], from socket: WebSocket) {
            guard let frame = try? text.withUnsafeBufferPointer({ try ServerFrame(Bytes($0)) }) else {
                return end("found an invalid frame")
            }
            switch frame.body {
            case .events(let part): proven[part.stream] = part.to
            case .upto(_, let seq): for stream in proven.keys { proven[stream] = max(proven[stream] ?? seq, seq) }
            case .error(let failure): end("found \(failure.error)")
            default: return
            }
            if !proven.isEmpty, proven.values.allSatisfy({ $0 >= head }) { end(nil) }
        }

        func closed(_ socket: WebSocket, code: UInt16, reason: String) { end("the gateway closed: \(code) \(reason)") }

        private func end(_ reason: String?) {
            done?(reason)
            done = nil
        }
    }
}

extension LocalNode {
    /// Returns the value of a metric. `name` includes its labels.
    fileprivate func metric(_ name: String) async throws -> Double {
        let loop = try EventLoop()
        defer { loop.stop() }
        let client = try loop.sync { LoopBound(HTTPClient(on: loop), on: loop) }
        let port = UInt16(clamping: port ?? 0)
        let question = HTTPClientRequest("GET", host: "127.0.0.1", port: port, target: "/metrics")
        let lines = String(decoding: try await client.fetch(question).body, as: UTF8.self).split(separator: "\n")
        guard let value = lines.first(where: { $0.hasPrefix(name + " ") })?.split(separator: " ").last,
            let number = Double(value)
        else { throw BenchmarkError("found no \(name)") }
        return number
    }
}
