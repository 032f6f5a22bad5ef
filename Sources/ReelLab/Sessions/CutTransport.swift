internal import ReelClient
internal import ReelCore
internal import Synchronization

/// A transport whose connection can be cut. It passes all calls to another transport, which several clients may share.
final class CutTransport: SyncTransport {
    private let transport: any SyncTransport
    /// The last connection that the client has opened.
    private let last = Mutex<CutConnection?>(nil)

    init(_ transport: any SyncTransport) {
        self.transport = transport
    }

    /// Cuts the connection. Frames that are on their way are lost, or arrive. Returns false if no connection was open.
    func cut() async -> Bool {
        await withCheckedContinuation { continuation in
            execute { [self] in continuation.resume(returning: last.withLock { $0 }?.cut() ?? false) }
        }
    }

    var executor: any SerialExecutor { transport.executor }

    var nowMs: Int64 { transport.nowMs }

    func check(_ node: String) throws(ReelError) { try transport.check(node) }

    func connect(
        to node: String,
        _ receive: @escaping @Sendable (TransportEvent) -> Void
    ) -> any TransportConnection {
        let connection = CutConnection(receive)
        connection.attach(transport.connect(to: node) { connection.received($0) })
        last.withLock { $0 = connection }
        return connection
    }

    func get(
        from node: String,
        _ target: String,
        token: String?,
        _ receive: @escaping @Sendable (TransportResponse) -> Void
    ) -> any TransportHandle {
        transport.get(from: node, target, token: token, receive)
    }

    func post(
        to node: String,
        _ target: String,
        json body: [UInt8],
        token: String?,
        _ receive: @escaping @Sendable (TransportResponse) -> Void
    ) -> any TransportHandle {
        transport.post(to: node, target, json: body, token: token, receive)
    }

    func after(_ ms: Int64, _ body: @escaping @Sendable () -> Void) -> any TransportHandle {
        transport.after(ms, body)
    }

    func execute(_ body: @escaping @Sendable () -> Void) { transport.execute(body) }

    func onBatchEnd(_ body: @escaping @Sendable () -> Void) { transport.onBatchEnd(body) }
}

/// A connection that can be cut. Used on the transport's executor only.
private final class CutConnection: TransportConnection, @unchecked Sendable {
    private enum State {
        case opening
        case open
        case ended
    }

    private let receive: @Sendable (TransportEvent) -> Void
    private var connection: (any TransportConnection)?
    private var state = State.opening

    init(_ receive: @escaping @Sendable (TransportEvent) -> Void) {
        self.receive = receive
    }

    /// Takes the connection of the transport, before its first event.
    func attach(_ connection: any TransportConnection) {
        self.connection = connection
    }

    /// Handles an event of the transport's connection.
    func received(_ event: TransportEvent) {
        switch event {
        case .opened: state = .open
        case .closed: end()
        case .text, .alive, .pong: break
        }
        receive(event)
    }

    /// Closes the connection as if the network had lost it. Returns false if it is not open.
    func cut() -> Bool {
        guard case .open = state else { return false }
        connection?.close()
        end()
        receive(.closed("cut by the replay"))
        return true
    }

    func send(_ text: [UInt8]) { connection?.send(text) }

    func ping(_ number: Int) { connection?.ping(number) }

    func close() {
        connection?.close()
        end()
    }

    private func end() {
        (state, connection) = (.ended, nil)
    }
}
