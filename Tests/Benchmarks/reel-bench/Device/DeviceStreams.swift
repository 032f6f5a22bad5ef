import Foundation
import ReelClient
import ReelCore
import ReelLab
import ReelLog
import ReelNet
import Synchronization

/// Measures a device that opens many streams of which it holds everything already.
enum DeviceStreams {
    private static let (streams, rounds) = (1_000, 5)

    @Sendable static func run() async throws -> [Measured] {
        var (times, requests): ([Double], [Double]) = ([], [])
        try await withFolder { folder in
            let log = try SQLiteLog(path: folder + "/log.sqlite", partitions: 1)
            for number in 0..<streams { try log.fill(BenchEvents.inserts(1, from: number), of: name(number)) }
            log.close()
            try await withReel(["serve", "--data", folder], in: folder) { node in
                let device = folder + "/device.sqlite"
                let client = try SyncClient(nodes: [node.url], store: .file(device))
                for number in 0..<streams { try await client.open(name(number)) }
                for number in 0..<streams { try await client.open(name(number)).waitUntil(seq: Seq(streams) - 1) }
                await client.close()
                for _ in 0..<rounds {
                    let warm = try await start(node, device)
                    times.append(warm.seconds)
                    requests.append(Double(warm.requests))
                }
            }
        }
        let work = "\(streams) warm streams with nothing new"
        return [
            Measured(work: work + ": until all are live", value: median(times), unit: "s", goal: .atMost(0.5)),
            Measured(work: work + ": requests", value: median(requests), unit: "", goal: .atMost(10)),
        ]
    }

    private static func name(_ number: Int) -> String { "warm\(number)" }

    /// Returns the time until all streams are live, and the number of requests and frames that the device has sent.
    private static func start(_ node: LocalNode, _ device: String) async throws -> (seconds: Double, requests: Int) {
        let transport = CountingTransport(try NetTransport())
        let start = ContinuousClock.now
        let client = try SyncClient(nodes: [node.url], store: .file(device), transport: transport)
        for number in 0..<streams { try await client.open(name(number)) }
        while transport.counts.subscribed.count < streams, (ContinuousClock.now - start) / .seconds(1) < 10 {
            try await Task.sleep(for: .milliseconds(2))
        }
        let taken = (ContinuousClock.now - start) / .seconds(1)
        let counts = transport.counts
        await client.close()
        guard counts.subscribed.count == streams else {
            throw BenchmarkError("only \(counts.subscribed.count) of \(streams) streams are live")
        }
        return (taken, counts.requests)
    }
}

/// A transport that counts requests, and the streams that nodes have confirmed as live.
private final class CountingTransport: SyncTransport {
    struct Counts {
        var requests = 0
        var subscribed: Set<StreamName> = []
    }

    private let transport: NetTransport
    private let state = Mutex(Counts())

    init(_ transport: NetTransport) { self.transport = transport }

    var counts: Counts { state.withLock { $0 } }
    var executor: any SerialExecutor { transport.executor }
    var nowMs: Int64 { transport.nowMs }

    func check(_ node: String) throws(ReelError) { try transport.check(node) }

    func connect(to node: String, _ receive: @escaping @Sendable (TransportEvent) -> Void) -> any TransportConnection {
        let connection = transport.connect(to: node) { [self] event in
            if case .text(let text) = event, let frame = text.withUnsafeBytes({ try? ServerFrame($0) }),
                case .subscribed(let subscribed) = frame.body
            {
                state.withLock { _ = $0.subscribed.insert(subscribed.stream) }
            }
            receive(event)
        }
        return CountingConnection(connection) { self.noteRequest() }
    }

    func get(
        from node: String,
        _ target: String,
        token: String?,
        _ receive: @escaping @Sendable (TransportResponse) -> Void
    ) -> any TransportHandle {
        noteRequest()
        return transport.get(from: node, target, token: token, receive)
    }

    func post(
        to node: String,
        _ target: String,
        json body: [UInt8],
        token: String?,
        _ receive: @escaping @Sendable (TransportResponse) -> Void
    ) -> any TransportHandle {
        noteRequest()
        return transport.post(to: node, target, json: body, token: token, receive)
    }

    func after(_ ms: Int64, _ body: @escaping @Sendable () -> Void) -> any TransportHandle {
        transport.after(ms, body)
    }

    func execute(_ body: @escaping @Sendable () -> Void) { transport.execute(body) }
    func onBatchEnd(_ body: @escaping @Sendable () -> Void) { transport.onBatchEnd(body) }

    private func noteRequest() { state.withLock { $0.requests += 1 } }
}

/// A connection that reports each frame that it sends.
private struct CountingConnection: TransportConnection {
    private let connection: any TransportConnection
    private let willSend: () -> Void

    init(_ connection: any TransportConnection, willSend: @escaping () -> Void) {
        (self.connection, self.willSend) = (connection, willSend)
    }

    func send(_ text: [UInt8]) {
        willSend()
        connection.send(text)
    }

    func ping(_ number: Int) { connection.ping(number) }
    func close() { connection.close() }
}
