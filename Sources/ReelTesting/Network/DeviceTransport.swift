internal import ReelClient
internal import ReelCore

/// The transport of one process of a device.
final class DeviceTransport: SyncTransport {
    private let network: TestNetwork
    private let device: String
    private let process: Int

    init(_ network: TestNetwork, _ device: String, process: Int) {
        (self.network, self.device, self.process) = (network, device, process)
    }

    var executor: any SerialExecutor { network.loop }
    var nowMs: Int64 { network.loop.nowMs }
    var wallMs: Int64 { network.wallMs }

    func check(_ node: String) {}

    func connect(to node: String, _ receive: @escaping @Sendable (TransportEvent) -> Void) -> any TransportConnection {
        Connection(network: network, number: network.connect(device, process, receive))
    }

    func get(
        from node: String,
        _ target: String,
        token: String?,
        _ receive: @escaping @Sendable (TransportResponse) -> Void
    ) -> any TransportHandle {
        Request(network: network, number: network.request(device, process, target, nil, receive))
    }

    func post(
        to node: String,
        _ target: String,
        json body: [UInt8],
        token: String?,
        _ receive: @escaping @Sendable (TransportResponse) -> Void
    ) -> any TransportHandle {
        Request(network: network, number: network.request(device, process, target, body, receive))
    }

    func after(_ ms: Int64, _ body: @escaping @Sendable () -> Void) -> any TransportHandle {
        // A pause of 0 ms would let a client repeat work without end at one moment.
        network.loop.at(nowMs + max(1, ms)) { [weak network, device, process] in
            if network?.isRunning(device, process) == true { body() }
        }
    }

    func execute(_ body: @escaping @Sendable () -> Void) { network.loop.execute(body) }

    func onBatchEnd(_ body: @escaping @Sendable () -> Void) { network.loop.atBatchEnd(body) }

    private struct Connection: TransportConnection {
        let network: TestNetwork
        let number: Int

        func send(_ text: [UInt8]) { network.send(text, number) }
        func ping(_ ping: Int) { network.ping(number, ping) }
        func close() { network.close(number) }
    }

    private struct Request: TransportHandle {
        let network: TestNetwork
        let number: Int

        func cancel() { network.cancelRequest(number) }
    }
}
