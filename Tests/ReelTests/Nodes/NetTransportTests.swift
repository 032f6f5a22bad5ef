import Foundation
import ReelClient
import ReelLab
import ReelNet
import Synchronization
import TestSupport
import Testing

/// Tests the transport of a device on Linux.
@Suite(.timeLimit(.minutes(20))) struct NetTransportTests {
    private final class Node: HTTPHandler {
        private let asked: @Sendable () -> Void

        init(_ asked: @escaping @Sendable () -> Void) { self.asked = asked }

        func respond(to request: HTTPRequest, _ exchange: HTTPExchange) {
            asked()
            exchange.respond(HTTPResponse(status: 200))
        }

        func upgrade(_ offer: WebSocketOffer) -> WebSocketDecision { .refuse(HTTPResponse(status: 404)) }
        func refusal(of violation: HTTPViolation) -> HTTPResponse { HTTPResponse(status: violation.status) }
    }

    /// A user of the transport that runs on the transport's executor, as a client does.
    private actor Device {
        private let transport: NetTransport
        private let executor: any SerialExecutor

        init() throws {
            transport = try NetTransport()
            executor = transport.executor
        }

        nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

        func use(_ body: @Sendable (NetTransport) -> Void) { body(transport) }
    }

    private enum Event { case asked, heard, deadline }

    @Test(
        "the transport states the expected form of an invalid node address",
        arguments: ["foo", "ftp://foo:1", "foo:bar", ""]
    )
    func explainsInvalidAddress(node: String) async throws {
        let said = Mutex<[String]>([])
        let device = try Device()
        await device.use { transport in
            _ = transport.connect(to: node) { if case .closed(let reason) = $0 { said.withLock { $0.append(reason) } } }
            _ = transport.get(from: node, "/", token: nil) {
                if case .failed(let reason) = $0 { said.withLock { $0.append(reason) } }
            }
        }
        let expected =
            "found the node \(node.debugDescription), expected http://HOST:PORT or https://HOST:PORT without a path, and a"
            + " port from 1 to 65535"
        try await eventually("both are told") { said.withLock { $0.count } == 2 }
        #expect(said.withLock { $0 } == [expected, expected])
    }

    /// The kernel refuses this address immediately, as on a device without a network.
    private let nowhere = "http://255.255.255.255:9"

    @Test("the transport reports an immediate failure after the call returns") func reportsAfterReturn() async throws {
        let said = Mutex<[String]>([])
        let device = try Device()
        await device.use { transport in
            _ = transport.connect(to: nowhere) { if case .closed = $0 { said.withLock { $0.append("closed") } } }
            _ = transport.get(from: nowhere, "/", token: nil) {
                if case .failed = $0 { said.withLock { $0.append("failed") } }
            }
            said.withLock { $0.append("back") }
        }
        try await eventually("both are told") { said.withLock { $0.count } == 3 }
        #expect(said.withLock { $0 }.first == "back")
    }

    @Test("a device without a network tries on") func aDeviceWithoutA() async throws {
        let client = try SyncClient(nodes: [nowhere], store: .memory, transport: try NetTransport())
        var notices = await client.notices().makeAsyncIterator()
        try await client.open("s")
        var failures = 0
        while failures < 2, let notice = await notices.next() {
            if case .disconnected(let node, _) = notice, node == nowhere { failures += 1 }
        }
        #expect(failures == 2)
        await client.close()
    }

    /// The uses of a transport after which its loop must end.
    enum Use: CaseIterable { case nothing, timer, offlineClient, lostClient, connectedClient }

    @Test("a transport that nobody uses any more frees its loop", arguments: Use.allCases)
    func freesItsLoop(after use: Use) async throws {
        weak var loop: AnyObject?
        do {
            let transport = try NetTransport()
            loop = transport.executor
            switch use {
            case .nothing: break
            case .timer: transport.execute { [transport] in _ = transport.after(3_600_000) {} }
            case .offlineClient, .lostClient:
                let nodes = use == .lostClient ? [nowhere] : []
                let client = try SyncClient(nodes: nodes, store: .memory, transport: transport)
                try await client.open("s").publish(.insert("m", id: "0"))
                await client.close()
            case .connectedClient:
                let folder = try TemporaryFolder(prefix: "reel-transport-")
                let node = try NodeProcess.serve(in: folder)
                let client = try SyncClient(
                    nodes: ["http://127.0.0.1:\(node.port)"],
                    store: .memory,
                    transport: transport
                )
                try await client.open("s").publish(.insert("m", id: "0")).outcome()
                await client.close()
            }
        }
        try await eventually("the loop is freed") { loop == nil }
    }

    @Test("a process that was stopped hears what has come before a deadline passes") func aProcessThatWas() async throws
    {
        let events = Seen()
        // Dispatch traps if a semaphore is released below its initial value.
        let answers = DispatchSemaphore(value: 0)
        answers.signal()
        let loop = try EventLoop()
        defer {
            loop.stop()
            loop.join()
        }
        let (server, address) = try loop.sync {
            let node = Node {
                events.add(.asked)
                answers.wait()
            }
            let server = HTTPServer(on: loop, handler: node)
            return (LoopBound(server, on: loop), try server.listen(on: try SocketAddress("127.0.0.1", port: 0)))
        }
        let device = try Device()
        @Sendable func ask(_ transport: NetTransport) {
            _ = transport.get(from: "http://\(address)", "/", token: nil) { if case .end = $0 { events.add(.heard) } }
        }
        await device.use(ask)
        try await events.include(.asked, .heard)
        await device.use(ask)
        try await events.include(.asked, .heard, .asked)
        // The loop is blocked until the answer is in the kernel and the deadline has passed, as
        // in a process that was stopped.
        await device.use { transport in
            _ = transport.after(50) { events.add(.deadline) }
            let due = ContinuousClock.now + .milliseconds(50)
            answers.signal()
            // The server writes the handler's answer after one turn of its loop.
            for _ in 0..<2 { try? loop.sync {} }
            while ContinuousClock.now <= due { usleep(1_000) }
        }
        try await events.include(.asked, .heard, .asked, .heard, .deadline)
        loop.execute { server.value.close() }
    }

    private final class Seen: Sendable {
        private let events = Mutex<[Event]>([])
        var all: [Event] { events.withLock { $0 } }
        func add(_ event: Event) { events.withLock { $0.append(event) } }

        func include(_ wanted: Event...) async throws {
            try await eventually("\(wanted)") { all.count == wanted.count }
            #expect(all == wanted)
        }
    }
}
