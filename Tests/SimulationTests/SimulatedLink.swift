import ReelBase
import ReelClient
import ReelCore
import ReelNet

@testable import ReelGateway

/// A connection between a device and a gateway. Each direction keeps its order, and has its own delays and its own end.
final class SimulatedLink: @unchecked Sendable {
    /// One direction.
    private struct Way {
        var arrivedMs: Int64 = 0
        /// True if nothing arrives any more, not even the information that the connection has ended.
        var isCut = false
    }

    let device: SimulatedProcess
    /// The subject of the device's tokens.
    private let user: String
    let gateway: SimulatedGateway
    fileprivate let lane: Int
    private var random: SeededGenerator
    private var up = Way()
    private var down = Way()
    private var receive: (@Sendable (TransportEvent) -> Void)?
    private var client: SocketClient?
    private var isClosedByGateway = false
    /// The number of times that the gateway holds this connection, and what has arrived meanwhile.
    private var holds = 0
    private var waiting: [[UInt8]] = []
    private(set) var pendingBytes = 0
    private var writtenBytes = 0
    private var pace = SlowReaderDetector()
    /// The speed in bytes per millisecond at which the device receives data.
    let bytesPerMs: Int64

    init(
        _ device: SimulatedProcess,
        _ gateway: SimulatedGateway,
        user: String,
        bytesPerMs: Int64,
        _ receive: @escaping @Sendable (TransportEvent) -> Void
    ) {
        self.device = device
        self.gateway = gateway
        self.user = user
        self.receive = receive
        self.bytesPerMs = bytesPerMs
        lane = device.time.addLane()
        random = SeededGenerator(seed: device.random.next())
    }

    /// True if neither end waits for anything.
    var isOver: Bool { receive == nil && client == nil }

    // MARK: Faults

    /// Delays everything by this time, also data in flight.
    func stall(_ ms: Int64) {
        up.arrivedMs = max(up.arrivedMs, device.nowMs + ms)
        down.arrivedMs = max(down.arrivedMs, device.nowMs + ms)
    }

    /// Cuts both directions. Each end is informed after a while, or has to find out without help.
    func cut(tellsDevice: Bool, tellsGateway: Bool) {
        (up.isCut, down.isCut) = (true, true)
        let (deviceMs, gatewayMs) = (pick(0...200), pick(0...200))
        if tellsDevice { device.at(device.nowMs + deviceMs, lane: lane) { [self] in deviceLost("reset") } }
        if tellsGateway {
            gateway.process.at(gateway.process.nowMs + gatewayMs, lane: lane) { [self] in gatewayLost() }
        }
    }

    /// Drops everything from the gateway, while data from the device still arrives.
    func deafen() { down.isCut = true }

    // MARK: Life

    /// Sends the device's connection request.
    func open() {
        gateway.process.at(arrival(&up, bytes: 200), lane: lane) { [self] in
            guard receive != nil, !up.isCut else { return }
            let client = gateway.accept(user)
            self.client = client
            gateway.links.append(self)
            client.opened(on: GatewayEnd(self))
            toDevice(bytes: 100) { $0(.opened) }
        }
    }

    private func deviceLost(_ reason: String) {
        let receive = receive
        self.receive = nil
        receive?(.closed(reason))
    }

    private func gatewayLost() {
        let client = client
        self.client = nil
        gateway.links.removeAll { $0 === self }
        client?.closed()
    }

    /// Closes the connection on the device's side.
    func abandon() {
        receive = nil
        guard !up.isCut else { return }
        gateway.process.at(arrival(&up, bytes: 0), lane: lane) { [self] in gatewayLost() }
    }

    /// Removes the device's end; its process has ended without a message.
    func forgetDevice() { receive = nil }

    /// Removes the gateway's end; its process has ended. The gateway's loop would otherwise keep the client, and so the
    /// link and the gateway.
    func forgetGateway() {
        let client = client
        self.client = nil
        isClosedByGateway = true
        client?.closed()
    }

    // MARK: Directions

    private func pick(_ range: ClosedRange<Int64>) -> Int64 { .random(in: range, using: &random) }

    private func arrival(_ way: inout Way, bytes: Int) -> Int64 {
        way.arrivedMs = max(device.nowMs + pick(0...(pick(0...20) == 0 ? 300 : 15)), way.arrivedMs)
        way.arrivedMs += Int64(bytes) / bytesPerMs
        return way.arrivedMs
    }

    fileprivate func toGateway(_ text: [UInt8]) {
        guard receive != nil else { return }
        let ms = arrival(&up, bytes: text.count)
        gateway.process.at(ms, lane: lane) { [self] in
            guard !up.isCut, !isClosedByGateway else { return }
            waiting.append(text)
            handleWaiting()
        }
    }

    /// Delivers what has arrived, unless the gateway holds the connection.
    private func handleWaiting() {
        while holds == 0, !waiting.isEmpty, !isClosedByGateway { client?.received(text: waiting.removeFirst()) }
    }

    fileprivate func pingGateway(_ number: Int) {
        guard receive != nil else { return }
        let ms = arrival(&up, bytes: 0)
        gateway.process.at(ms, lane: lane) { [self] in
            if !up.isCut, client != nil { toDevice(bytes: 0) { $0(.pong(number)) } }
        }
    }

    private func toDevice(bytes: Int, _ body: @escaping (@Sendable (TransportEvent) -> Void) -> Void) {
        let ms = arrival(&down, bytes: bytes)
        device.at(ms, lane: lane) { [self] in
            if !down.isCut, let receive { body(receive) }
        }
    }

    /// The gateway's end.
    private final class GatewayEnd: ClientSocket {
        var maxMessage = Int.max
        let peerOrigin: UInt64 = 1
        let link: SimulatedLink

        init(_ link: SimulatedLink) { self.link = link }

        var isClosed: Bool { link.isClosedByGateway || link.client == nil }
        var pendingBytes: Int { link.pendingBytes }
        var writtenBytes: Int { link.writtenBytes }
        /// Nil, because messages arrive in one piece.
        var partBytes: Int? { nil }

        func send(_ frame: WebSocketFrame) {
            guard !isClosed else { return }
            let link = link
            let text = frame.payload
            link.gateway.judge(text, link)
            link.pendingBytes += frame.bytes.count
            link.writtenBytes += frame.bytes.count
            let ms = link.arrival(&link.down, bytes: frame.bytes.count)
            link.device.at(ms, lane: link.lane) {
                guard !link.down.isCut, let receive = link.receive else { return }
                link.gateway.world.trace(link.device.name, "hears \(String(decoding: text.prefix(120), as: UTF8.self))")
                receive(.text(text))
            }
            // The pieces of a long frame show the device that the gateway is alive.
            var partMs = ms - Int64(frame.bytes.count) / link.bytesPerMs + 5_000
            while partMs < ms {
                link.device.at(partMs, lane: link.lane) { if !link.down.isCut { link.receive?(.alive) } }
                partMs += 5_000
            }
            // The kernel's buffers empty at the pace of the device, also while the gateway hangs,
            // but not through a cut direction.
            link.gateway.process.at(ms, lane: link.lane) {
                guard !link.down.isCut else { return }
                link.pendingBytes -= frame.bytes.count
                if link.pendingBytes == 0 { link.client?.drained() }
            }
        }

        func sendNow(_ frame: WebSocketFrame) { send(frame) }

        func checkReadingPace() -> SlowReaderDetector.Finding {
            link.pace.look(written: link.writtenBytes, left: link.pendingBytes)
        }

        func ping(_ payload: [UInt8]) {
            guard !isClosed else { return }
            let link = link
            link.toDevice(bytes: 0) { receive in
                receive(.alive)
                let ms = link.arrival(&link.up, bytes: 0)
                link.gateway.process.at(ms, lane: link.lane) {
                    if !link.up.isCut { link.client?.received(pong: payload) }
                }
            }
        }

        func hold() { link.holds += 1 }

        func release() {
            let link = link
            link.holds -= 1
            link.gateway.process.at(link.gateway.process.nowMs, lane: link.lane) { link.handleWaiting() }
        }

        func close(code: UInt16?, reason: String) {
            guard !isClosed else { return }
            let link = link
            link.isClosedByGateway = true
            let ms = link.arrival(&link.down, bytes: 0)
            link.device.at(ms, lane: link.lane) {
                if !link.down.isCut { link.deviceLost("closed \(code ?? 0) \(reason)") }
            }
            // The gateway drops the connection after the device's answer, or after the time limit for it.
            link.gateway.process.at(ms + 100, lane: link.lane) { link.gatewayLost() }
        }

        func reset() {
            guard !isClosed else { return }
            link.isClosedByGateway = true
            link.cut(tellsDevice: !link.down.isCut, tellsGateway: true)
        }
    }
}

/// The device's end.
struct DeviceEnd: TransportConnection {
    let link: SimulatedLink

    func send(_ text: [UInt8]) { link.toGateway(text) }
    func ping(_ number: Int) { link.pingGateway(number) }
    func close() { link.abandon() }
}

extension WebSocketFrame {
    /// The text of one complete frame of a server.
    fileprivate var payload: [UInt8] {
        Array(bytes.dropFirst(bytes[1] < 126 ? 2 : bytes[1] == 126 ? 4 : 10))
    }
}
