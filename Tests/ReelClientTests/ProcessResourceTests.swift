import Foundation
import ReelNet
import Synchronization
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// The resources that clients use in their process. Each test has a process of its own, in which nothing else runs.
@Suite(.timeLimit(.minutes(10))) struct ProcessResourceTests {
    @Test("fifty opened and closed clients leave no thread and no descriptor")
    func fiftyClients() async {
        await #expect(processExitsWith: .success) {
            let node = try SilentNode()
            let network = try FakeNetwork()
            for number in 0..<4 { try await Self.openAndClose(number, node, network) }
            let before = ProcessResources()
            #expect(before.threads.count > 1 && before.descriptors.count > 3)
            for number in 4..<54 { try await Self.openAndClose(number, node, network) }
            do {
                try await eventually(seconds: 20) { ProcessResources().isWithin(before) }
            } catch {
                Issue.record("found \(ProcessResources()), expected little more than \(before)")
            }
            withExtendedLifetime((node, network)) {}
        }
    }

    @Test("clients change no setting of the whole process")
    func processState() async {
        await #expect(processExitsWith: .success) {
            signal(SIGPIPE, SIG_DFL)
            unsetenv("UV_THREADPOOL_SIZE")
            let before = ProcessState()
            let node = try SilentNode()
            let network = try FakeNetwork()
            for number in 0..<4 { try await Self.openAndClose(number, node, network) }
            #expect(ProcessState() == before)
            withExtendedLifetime((node, network)) {}
        }
    }

    /// Opens a client and ends it. The number selects the store (a file or memory), the network (a socket or a fake
    /// one), and the end (`close` or the last reference).
    private static func openAndClose(_ number: Int, _ node: SilentNode, _ network: FakeNetwork) async throws {
        let path = temporaryPath()
        defer { removeStore(path) }
        let store = number % 2 == 0 ? SyncClient.Store.file(path) : .memory
        let isClosed = number % 3 != 0
        weak var gone: SyncClient?
        do {
            let greeted = node.greeted
            let isReal = number % 4 < 2
            // Two clients with the same seed would regard themselves as the same device.
            let client =
                isReal
                ? try SyncClient(nodes: [node.url], store: store)
                : try network.client(store: store, seed: UInt64(number))
            gone = client
            let changes = await client.notices()
            let stream = try await client.open("s")
            let publication = try await stream.publish(.insert("m", id: "\(number)"))
            if isReal {
                try await eventually("the node hears a client") { node.greeted > greeted }
            } else {
                try await publication.outcome()
            }
            if isClosed { await client.close() }
            withExtendedLifetime(changes) {}
        }
        try await eventually("the client is gone") { gone == nil }
    }
}

/// A node that accepts connections on the loopback, reads messages, and sends nothing.
private final class SilentNode: Sendable {
    private let loop: EventLoop
    private let server: LoopBound<HTTPServer>
    private let handler: LoopBound<Handler>
    private let heard: Heard
    /// A URL with the name `localhost`, so that clients look up its address.
    let url: String

    init() throws {
        let loop = try EventLoop()
        let heard = Heard()
        let (server, handler, port) = try loop.sync {
            let handler = Handler(heard)
            let server = HTTPServer(on: loop, handler: handler)
            let address = try server.listen(on: SocketAddress("127.0.0.1", port: 0))
            return (LoopBound(server, on: loop), LoopBound(handler, on: loop), address.port)
        }
        self.loop = loop
        self.heard = heard
        (self.server, self.handler) = (server, handler)
        url = "http://localhost:\(port)"
    }

    /// The number of messages that arrived.
    var greeted: Int { heard.count.withLock { $0 } }

    private final class Heard: Sendable { let count = Mutex(0) }

    private final class Handler: HTTPHandler, WebSocketHandler {
        private let heard: Heard

        init(_ heard: Heard) { self.heard = heard }

        func respond(to request: HTTPRequest, _ exchange: HTTPExchange) {
            exchange.respond(HTTPResponse(status: 503))
        }

        func upgrade(_ offer: WebSocketOffer) -> WebSocketDecision {
            .accept(subprotocol: offer.subprotocols.first, maxMessage: 1 << 20, handler: self)
        }

        func refusal(of violation: HTTPViolation) -> HTTPResponse { HTTPResponse(status: violation.status) }
        func opened(_ socket: WebSocket) {}
        func received(text: [UInt8], from socket: WebSocket) { heard.count.withLock { $0 += 1 } }
        func received(binary: [UInt8], from socket: WebSocket) {}
        func closed(_ socket: WebSocket, code: UInt16, reason: String) {}
    }
}

/// The threads and the descriptors of this process, counted by their names.
private struct ProcessResources: CustomStringConvertible {
    let threads: [String: Int]
    let descriptors: [String: Int]

    init() {
        let files = FileManager.default
        let tasks = (try? files.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
        // A thread may end before its name is read, and a descriptor may close before that. The threads of Dispatch
        // have names that end with a quality of service. They start and end with the work of the whole process.
        threads = Self.counted(
            tasks.compactMap { try? String(contentsOfFile: "/proc/self/task/\($0)/comm", encoding: .utf8) }
                .filter { !$0.contains("qos") }
        )
        let folder = "/proc/self/fd/"
        let open = (try? files.contentsOfDirectory(atPath: folder)) ?? []
        descriptors = Self.counted(open.compactMap { try? files.destinationOfSymbolicLink(atPath: folder + $0) })
    }

    private static func counted(_ names: [String]) -> [String: Int] {
        // The number in `socket:[123]` names a single socket, so it is removed.
        names.reduce(into: [:]) { $0[String($1.prefix { $0 != "[" && $0 != "\n" }), default: 0] += 1 }
    }

    /// True if no count has grown by three or more. Foundation and Dispatch open some resources late and once. Fifty
    /// clients include at least four of each kind, so a resource that one kind leaves open is there four times.
    func isWithin(_ before: ProcessResources) -> Bool {
        threads.allSatisfy { $1 < before.threads[$0, default: 0] + 3 }
            && descriptors.allSatisfy { $1 < before.descriptors[$0, default: 0] + 3 }
    }

    var description: String { "threads \(threads), descriptors \(descriptors)" }
}

/// The settings that a library can change for its whole process.
private struct ProcessState: Equatable {
    let environment = ProcessInfo.processInfo.environment
    let handlers = (1..<65).map { number in
        var handling = sigaction()
        guard sigaction(Int32(number), nil, &handling) == 0 else { return -1 }
        return unsafeBitCast(handling.__sigaction_handler.sa_handler, to: Int.self)
    }
    let folder = FileManager.default.currentDirectoryPath
    let locale = setlocale(LC_ALL, nil).map { String(cString: $0) }
    let fileMask = {
        let mask = umask(0)
        umask(mask)
        return mask
    }()
    let limits = (0..<16).map { number in
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(UInt32(number)), &limit)
        return [limit.rlim_cur, limit.rlim_max]
    }
}
