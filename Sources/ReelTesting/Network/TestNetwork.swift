internal import ReelBase
internal import ReelClient
internal import ReelCore
internal import Synchronization

/// The network between the devices of a world and its node. Each message takes a time that comes from the seed.
///
/// Nothing that waits in the loop keeps the network: a client, or the world, does.
final class TestNetwork: Sendable {
    /// The time at which each world begins, in milliseconds since 1970.
    static let beginMs: Int64 = 1_800_000_000_000

    /// The connection of a device with the network.
    fileprivate struct Link {
        var isCut = false
        /// The processes of the device so far. Only the last one may send.
        var process = 0
        var isRunning = false
        var random: SeededGenerator
    }

    /// A connection between a process and the node.
    fileprivate struct Connection {
        let device: String
        let receive: @Sendable (TransportEvent) -> Void
        /// The number of its messages on their way.
        var inFlight = 0
        /// The times at which the last message arrives, at the node and at the device. Messages keep their order.
        var nodeMs: Int64 = 0
        var deviceMs: Int64 = 0
    }

    /// A request by HTTP that has no complete answer yet.
    fileprivate struct Request {
        let device: String
        let receive: @Sendable (TransportResponse) -> Void
    }

    fileprivate struct State {
        var node = TestNode()
        var links: [String: Link] = [:]
        var connections: [Int: Connection] = [:]
        var requests: [Int: Request] = [:]
        /// The number of connections and requests so far.
        var count = 0
    }

    /// The largest piece of an answer by HTTP, in bytes.
    private static let pieceBytes = 16 << 10

    let loop = VirtualLoop()
    private let seed: UInt64
    private let delaysMs: ClosedRange<Int64>
    private let state = Mutex(State())

    init(seed: UInt64, delaysMs: ClosedRange<Int64>) {
        self.seed = seed
        self.delaysMs = delaysMs
    }

    var wallMs: Int64 { Self.beginMs + loop.nowMs }

    /// Returns a value that is read from the node.
    func node<T: Sendable>(_ body: (borrowing TestNode) -> T) -> T { state.withLock { body($0.node) } }

    // MARK: Devices

    /// Adds a device, and returns false if there is one of this name.
    func add(_ device: String) -> Bool {
        state.withLock { state in
            guard state.links[device] == nil else { return false }
            // Adjacent seeds give shifted sequences of numbers, so the number of the device is mixed in first.
            var mixer = SeededGenerator(seed: seed ^ UInt64(state.links.count + 1) << 32)
            state.links[device] = Link(random: SeededGenerator(seed: mixer.next()))
            return true
        }
    }

    /// Starts a process of a device, and returns its number and the seed of its client.
    func start(_ device: String) -> (process: Int, seed: UInt64) {
        state.withLock { state in
            state.links[device]?.process += 1
            state.links[device]?.isRunning = true
            return (state.links[device]?.process ?? 0, state.links[device]?.random.next() ?? 0)
        }
    }

    /// Ends the process of a device without a farewell: the node notices the end of the connection.
    func kill(_ device: String) {
        state.withLock { state in
            state.links[device]?.isRunning = false
            _ = state.drop(device)
        }
    }

    /// True if a process runs, and may use its timers and the network.
    func isRunning(_ device: String, _ process: Int) -> Bool {
        state.withLock { $0.isRunning(device, process) }
    }

    func isCut(_ device: String) -> Bool { state.withLock { $0.links[device]?.isCut == true } }

    /// The number of messages and requests of a device that are on their way.
    func inFlight(_ device: String) -> Int {
        state.withLock { state in
            state.connections.values.reduce(0) { $0 + ($1.device == device ? $1.inFlight : 0) }
                + state.requests.values.reduce(0) { $0 + ($1.device == device ? 1 : 0) }
        }
    }

    func cut(_ device: String) {
        state.withLock { $0.links[device]?.isCut = true }
        end(device, "the network is cut")
    }

    /// Connects a device with the network, and ends the refusals that are for it alone.
    func heal(_ device: String) {
        let refused = state.withLock { state in
            state.links[device]?.isCut = false
            return state.node.takeRefusals { $0.device == device }
        }
        reconnect(after: refused)
    }

    func healAll() {
        let refused = state.withLock { state in
            for device in state.links.keys { state.links[device]?.isCut = false }
            return state.node.takeRefusals { _ in true }
        }
        reconnect(after: refused)
    }

    /// Adds a refusal, and returns its number.
    func refuse(_ requests: TestRequests, _ code: ErrorCode, of device: String?) -> Int {
        state.withLock { state in
            state.count += 1
            state.node.refusals.append(
                TestRefusal(number: state.count, requests: requests, code: code, device: device)
            )
            return state.count
        }
    }

    func endRefusal(_ number: Int) {
        reconnect(after: state.withLock { $0.node.takeRefusals { $0.number == number } })
    }

    /// Breaks the connections of the devices that repeat a refused request only on another connection.
    private func reconnect(after refusals: [TestRefusal]) {
        let ended = refusals.filter { !$0.isTemporary }
        let devices = state.withLock { Array($0.links.keys) }
        for device in devices.sorted() where ended.contains(where: { $0.concerns(device) }) {
            end(device, "the node has ended the connection")
        }
    }

    /// Breaks the connections and requests of a device.
    private func end(_ device: String, _ reason: String) {
        let (connections, requests) = state.withLock { $0.drop(device) }
        loop.execute {
            for connection in connections { connection.receive(.closed(reason)) }
            for request in requests { request.receive(.failed(reason)) }
        }
    }

    // MARK: Connections

    /// Opens a connection of a process, and returns its number.
    func connect(
        _ device: String,
        _ process: Int,
        _ receive: @escaping @Sendable (TransportEvent) -> Void
    ) -> Int {
        let (number, isOpen) = state.withLock { state in
            state.count += 1
            guard state.isRunning(device, process) else { return (state.count, false) }
            state.connections[state.count] = Connection(device: device, receive: receive)
            return (state.count, state.links[device]?.isCut == false)
        }
        deliver(isOpen ? .opened : .closed("no network"), number)
        return number
    }

    /// Sends a frame to the node.
    func send(_ text: [UInt8], _ number: Int) {
        toNode(number) { network in
            guard let frame = text.withUnsafeBytes({ try? ClientFrame($0) }) else { return }
            network.handle(frame, number)
        }
    }

    func ping(_ number: Int, _ ping: Int) { toNode(number) { $0.deliver(.pong(ping), number) } }

    func close(_ number: Int) {
        state.withLock { state in
            state.connections[number] = nil
            state.node.disconnected(number)
        }
    }

    private func toNode(_ number: Int, _ arrive: @escaping @Sendable (TestNetwork) -> Void) {
        let nowMs = loop.nowMs
        let atMs = state.withLock { state -> Int64? in
            guard let device = state.connections[number]?.device else { return nil }
            let atMs = max(state.connections[number]?.nodeMs ?? 0, nowMs + state.delay(device, delaysMs))
            state.connections[number]?.nodeMs = atMs
            state.connections[number]?.inFlight += 1
            return atMs
        }
        guard let atMs else { return }
        loop.at(atMs) { [weak self] in
            guard let self, hasArrived(number) else { return }
            arrive(self)
        }
    }

    /// Sends an event to the device. `.closed` ends the connection.
    private func deliver(_ event: TransportEvent, _ number: Int) {
        let nowMs = loop.nowMs
        let atMs = state.withLock { state -> Int64? in
            guard let device = state.connections[number]?.device else { return nil }
            let atMs = max(state.connections[number]?.deviceMs ?? 0, nowMs + state.delay(device, delaysMs))
            state.connections[number]?.deviceMs = atMs
            state.connections[number]?.inFlight += 1
            return atMs
        }
        guard let atMs else { return }
        loop.at(atMs) { [weak self] in
            guard let self, hasArrived(number) else { return }
            let receive = state.withLock { $0.connections[number]?.receive }
            if case .closed = event { close(number) }
            receive?(event)
        }
    }

    /// Counts a message as arrived. Returns false if the connection has ended meanwhile: the message is lost.
    private func hasArrived(_ number: Int) -> Bool {
        state.withLock { state in
            state.connections[number]?.inFlight -= 1
            return state.connections[number] != nil
        }
    }

    private func handle(_ frame: ClientFrame, _ number: Int) {
        let atMs = wallMs
        let answers = state.withLock { state in
            guard let device = state.connections[number]?.device else { return [TestNode.Answer]() }
            return state.node.receive(frame, on: number, of: device, atMs: atMs)
        }
        for answer in answers {
            switch answer {
            case .frame(let frame, let to): deliver(.text(frame.encoded()), to)
            case .close(let to, let reason): deliver(.closed(reason), to)
            }
        }
    }

    // MARK: Requests

    /// Sends a request by HTTP, and returns its number. `question` is the body of a POST request; nil: GET.
    func request(
        _ device: String,
        _ process: Int,
        _ target: String,
        _ question: [UInt8]?,
        _ receive: @escaping @Sendable (TransportResponse) -> Void
    ) -> Int {
        let nowMs = loop.nowMs
        let (number, atMs) = state.withLock { state -> (Int, Int64) in
            state.count += 1
            guard state.isRunning(device, process) else { return (state.count, nowMs) }
            state.requests[state.count] = Request(device: device, receive: receive)
            return (state.count, nowMs + state.delay(device, delaysMs))
        }
        loop.at(atMs) { [weak self] in self?.answer(number, target, question) }
        return number
    }

    func cancelRequest(_ number: Int) { state.withLock { $0.requests[number] = nil } }

    private func answer(_ number: Int, _ target: String, _ question: [UInt8]?) {
        let answer = state.withLock { state -> TestNode.HTTPAnswer? in
            guard let device = state.requests[number]?.device, state.links[device]?.isCut == false else { return nil }
            return state.node.answer(target, question, of: device)
        }
        guard let answer else { return respond([.failed("no network")], number) }
        var parts: [TransportResponse] = [.head(status: answer.status, length: Int64(answer.body.count))]
        for start in stride(from: 0, to: answer.body.count, by: Self.pieceBytes) {
            parts.append(.body(Array(answer.body[start..<min(start + Self.pieceBytes, answer.body.count)])))
        }
        respond(parts + [.end], number)
    }

    /// Sends the parts of an answer, one after the other.
    private func respond(_ parts: [TransportResponse], _ number: Int) {
        var atMs = loop.nowMs
        for (index, part) in parts.enumerated() {
            atMs += state.withLock { state in
                state.requests[number].map { state.delay($0.device, delaysMs) } ?? 0
            }
            loop.at(atMs) { [weak self] in
                let receive = self?.state.withLock { state in
                    defer { if index == parts.count - 1 { state.requests[number] = nil } }
                    return state.requests[number]?.receive
                }
                receive?(part)
            }
        }
    }
}

extension TestNetwork.State {
    fileprivate func isRunning(_ device: String, _ process: Int) -> Bool {
        links[device].map { $0.isRunning && $0.process == process } ?? false
    }

    fileprivate mutating func delay(_ device: String, _ delaysMs: ClosedRange<Int64>) -> Int64 {
        guard var random = links[device]?.random else { return 0 }
        defer { links[device]?.random = random }
        return .random(in: delaysMs, using: &random)
    }

    /// Removes all connections and requests of a device, and returns them.
    fileprivate mutating func drop(_ device: String) -> ([TestNetwork.Connection], [TestNetwork.Request]) {
        let ended = connections.filter { $0.value.device == device }.sorted { $0.key < $1.key }
        let asked = requests.filter { $0.value.device == device }.sorted { $0.key < $1.key }
        for (number, _) in ended {
            connections[number] = nil
            node.disconnected(number)
        }
        for (number, _) in asked { requests[number] = nil }
        return (ended.map(\.value), asked.map(\.value))
    }
}
