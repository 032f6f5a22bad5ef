import Foundation
import ReelBase
import ReelClient
import ReelCore

@testable import ReelGateway
@testable import ReelLog
@testable import ReelNode

/// One simulated run: devices, gateways, snapshot nodes and a log in virtual time. The seed
/// determines everything that happens.
///
/// First everything works with faults. Then all faults are healed, and every device must reach the same state.
final class World: @unchecked Sendable {
    /// The first fault that the checks have found.
    struct Failure: Error {
        var seed: UInt64
        var message: String
    }

    let seed: UInt64
    let time = VirtualTime()
    let folder: String
    let store: SimulatedLogStore
    /// True if devices have tokens, which expire.
    let hasTokens: Bool
    /// True if the stores of devices belong to users.
    let hasUsers: Bool
    /// True if a stream gets enough events at once to forget the sites that were retired before.
    let hasRush: Bool
    private(set) var gateways: [String: SimulatedGateway] = [:]
    let gatewayNames: [String]
    private(set) var snapshotNodes: [SimulatedSnapshotNode] = []
    private(set) var devices: [SimulatedDevice] = []
    private(set) var isWorking = true
    /// The HTTP requests that are refused, in percent.
    private(set) var requestsFail: Int
    /// The longest pause in milliseconds between two events of a device.
    let paceMs: Int64

    let lane: Int
    var random: SeededGenerator
    /// Called with one line for each thing that happens.
    private let tracer: ((String) -> Void)?
    private var parted: Set<String> = []
    private var settings: [String: GatewaySettings] = [:]
    var evidence = Evidence()
    private(set) var failure: String?

    init(seed: UInt64, folder: String, tracer: ((String) -> Void)? = nil) {
        self.seed = seed
        self.folder = folder
        self.tracer = tracer
        var random = SeededGenerator(seed: seed)
        func pick(_ range: ClosedRange<Int64>) -> Int64 { .random(in: range, using: &random) }
        lane = time.addLane()
        store = SimulatedLogStore(
            time,
            partitions: Int(pick(1...3)),
            epoch: Epoch(pick(1...1 << 40).magnitude),
            seed: seed
        )
        hasTokens = pick(0...1) == 0
        hasUsers = pick(0...1) == 0
        hasRush = pick(0...39) == 0
        gatewayNames = (0..<pick(1...3)).map { "g\($0)" }
        paceMs = pick(100...2_000)
        requestsFail = Int(pick(0...20))
        if pick(0...4) > 0 {
            store.faults = SimulatedLog.Faults(
                fails: Int(pick(0...6)),
                failsButAppends: Int(pick(0...6)),
                twice: Int(pick(0...6)),
                withoutPlace: Int(pick(0...10)),
                lost: Int(pick(0...3)),
                slow: Int(pick(0...3)),
                tailBreaks: Int(pick(0...4)),
                boundsFail: Int(pick(0...4))
            )
        }
        self.random = random
    }

    /// The current log.
    var log: SimulatedLog { store.log }

    // MARK: Parties

    func process(_ name: String) -> SimulatedProcess { SimulatedProcess(name, time, seed: seed) }

    func chance(_ percent: Int) -> Bool { pick(0...99) < percent }
    func pick(_ range: ClosedRange<Int64>) -> Int64 { .random(in: range, using: &random) }

    /// Returns the settings of a gateway. In most worlds the limits are low, so that few events reach each of them.
    func gatewaySettings(_ name: String) -> GatewaySettings {
        if let known = settings[name] { return known }
        var new = GatewaySettings()
        new.node.id = name
        new.ringBytes = Int(pick(0...2) == 0 ? 1 << 20 : pick(1_000...20_000))
        new.warmRecords = pick(1...200)
        new.eventBytes = Int(pick(12...24)) << 10
        new.frameBytes = Int(pick(20_000...60_000))
        new.batch = Int(pick(1...50))
        new.sendQueueBytes = Int(pick(0...2) == 0 ? 1 << 20 : pick(4_000...40_000))
        new.paceBytes = new.sendQueueBytes / 4
        new.fetchSeqs = pick(50...5_000)
        new.inFlightBytes = Int(pick(0...3) == 0 ? pick(3_000...20_000) : 1 << 20)
        new.listenerMicros = 7_500 * Int(pick(0...2))
        new.errors = 1_000
        new.subscriptions = pick(0...3) == 0 ? 1 : 1_000
        settings[name] = new
        return new
    }

    private func begin() {
        for name in gatewayNames { startGateway(name) }
        for number in 0..<pick(1...2) { snapshotNodes.append(SimulatedSnapshotNode(self, "n\(number)")) }
        let names = ["todo", "note", "memo"].compactMap { StreamName($0) }
        for number in 0..<pick(2...4) {
            let first = Int(pick(0...1))
            let streams = Array(names[first..<first + Int(pick(1...2))])
            devices.append(SimulatedDevice(self, "d\(number)", streams: streams))
        }
        for device in devices { device.begin() }
    }

    private func startGateway(_ name: String) {
        do {
            gateways[name] = try SimulatedGateway(self, name)
            trace(name, "started")
        } catch {
            // The process ends at its start and is started again.
            time.at(time.nowMs + 300, lane) { [self] in if gateways[name] == nil { startGateway(name) } }
        }
    }

    func isParted(_ device: String, _ gateway: String) -> Bool { parted.contains("\(device) \(gateway)") }

    // MARK: The run

    /// Runs the world to its end. Throws the first fault that the checks have found.
    func run() throws(Failure) {
        begin()
        let workMs = pick(5_000...40_000)
        scheduleFault()
        if hasRush { time.at(pick(workMs / 4...workMs * 3 / 4), lane) { [self] in prepareRush() } }
        time.run(until: workMs)
        heal()
        let healedMs = time.nowMs
        var (last, movedMs) = ([String](), healedMs)
        while failure == nil, case let missing = devices.compactMap(\.isNotDone), let what = missing.first {
            if missing != last { (last, movedMs) = (missing, time.nowMs) }
            // On a link of 2 B/ms, repeated data needs time.
            if time.nowMs - movedMs > 240_000 { broken("healed, and nothing has moved for four minutes: \(what)") }
            if time.nowMs - healedMs > 1_800_000 { broken("not done half an hour after all was healed: \(what)") }
            for device in devices { device.takeUpAccount() }
            time.run(until: time.nowMs + 1_000)
        }
        for device in devices { device.observe() }
        if failure == nil { judgeTheEnd() }
        stop()
        if let failure { throw Failure(seed: seed, message: failure) }
    }

    private func heal() {
        isWorking = false
        trace("world", "heals")
        store.faults = SimulatedLog.Faults()
        for log in store.logs { log.silentUntilMs = 0 }
        requestsFail = 0
        parted = []
        for name in gatewayNames where gateways[name] == nil { startGateway(name) }
        for gateway in gateways.values { gateway.process.wakeUp() }
        for node in snapshotNodes where !node.process.isAlive { node.restart() }
        for device in devices {
            if device.client == nil { device.restart() }
            device.process.wakeUp()
        }
    }

    private func stop() {
        for device in devices where device.client != nil { device.kill(tellsGateways: false) }
        time.run(until: time.nowMs)
        for gateway in gateways.values { gateway.kill(tellsDevices: false) }
        for log in store.logs { log.stop() }
        time.stop()
        gateways = [:]
        snapshotNodes = []
        devices = []
    }

    // MARK: Faults

    private func scheduleFault() {
        time.at(time.nowMs + pick(100...4_000), lane) { [self] in
            guard isWorking, failure == nil else { return }
            breakSomething()
            scheduleFault()
        }
    }

    private func breakSomething() {
        let gateway = gatewayNames[Int(pick(0...Int64(gatewayNames.count - 1)))]
        let device = devices[Int(pick(0...Int64(devices.count - 1)))]
        let partition = Int(pick(0...Int64(log.partitions.count - 1)))
        switch pick(0...117) {
        case 0..<14:
            guard let victim = gateways.removeValue(forKey: gateway) else { return }
            trace(gateway, "is killed")
            victim.kill(tellsDevices: chance(70))
            startLater(gateway)
        case 14..<22:
            guard let victim = gateways[gateway] else { return }
            let ms = pick(200...20_000)
            trace(gateway, "hangs for \(ms) ms")
            victim.process.hang(untilMs: time.nowMs + ms)
        case 22..<27:
            guard let victim = gateways[gateway] else { return }
            trace(gateway, "drains")
            victim.drain(withinMs: pick(0...2_000))
            time.at(time.nowMs + pick(1_000...4_000), lane) { [self] in
                if isWorking { end(victim, gateway) }
            }
        case 27..<42: kill(device)
        case 42..<48:
            let ms = pick(200...30_000)
            trace(device.name, "hangs for \(ms) ms")
            device.process.hang(untilMs: time.nowMs + ms)
        case 48..<68: breakLink(of: device)
        case 68..<74: part(device, gateway)
        case 74..<82:
            let ms = pick(300...9_000)
            trace("log", "is silent for \(ms) ms")
            log.silentUntilMs = max(log.silentUntilMs, time.nowMs + ms)
        case 82..<88:
            let node = snapshotNodes[Int(pick(0...Int64(snapshotNodes.count - 1)))]
            guard node.process.isAlive else { return }
            trace(node.name, "is killed")
            node.kill()
            time.at(time.nowMs + pick(100...6_000), lane) { if !node.process.isAlive { node.restart() } }
        case 88..<92:
            trace("log", "has a hole at \(log.head(partition) + 1) of \(partition)")
            log.leaveHole(partition)
        case 92..<97: litter(partition)
        case 97..<101: endEpoch()
        case 101..<108: retireSites()
        case 108..<110: device.removeStore()
        case 110..<113: device.switchAccount()
        case 113..<115: device.eraseAccount()
        default:
            let first = snapshotNodes.map { $0.needs(partition) }.min() ?? 0
            trace("log", "is trimmed below \(first) of \(partition)")
            log.trim(partition, before: first)
        }
    }

    /// Restarts a gateway that has ended as requested.
    func end(_ gateway: SimulatedGateway, _ name: String) {
        guard gateways[name] === gateway else { return }
        gateways[name] = nil
        gateway.kill(tellsDevices: true)
        startLater(name)
    }

    private func startLater(_ gateway: String) {
        time.at(time.nowMs + pick(50...8_000), lane) { [self] in if gateways[gateway] == nil { startGateway(gateway) } }
    }

    func kill(_ device: SimulatedDevice) {
        guard device.client != nil else { return }
        trace(device.name, "is killed")
        device.kill(tellsGateways: chance(70))
        if chance(25) { device.backUp() }
        if chance(15), device.restoreBackup() { trace(device.name, "is restored from a backup") }
        if hasUsers, chance(15) { device.rename() }
        restartLater(device)
    }

    func restartLater(_ device: SimulatedDevice) {
        time.at(time.nowMs + pick(50...6_000), lane) { if device.client == nil { device.restart() } }
    }

    private func breakLink(of device: SimulatedDevice) {
        let open = device.links.filter { !$0.isOver }
        guard let link = open.last else { return }
        switch pick(0...4) {
        case 0...1:
            let (tellsDevice, tellsGateway) = (chance(80), chance(80))
            trace(device.name, "loses its connection, \(tellsDevice ? "is told" : "is not told")")
            link.cut(tellsDevice: tellsDevice, tellsGateway: tellsGateway)
        default:
            let ms = pick(100...8_000)
            trace(device.name, "has a connection that stands still for \(ms) ms")
            link.stall(ms)
        }
    }

    private func part(_ device: SimulatedDevice, _ gateway: String) {
        let ms = pick(500...15_000)
        trace(device.name, "cannot reach \(gateway) for \(ms) ms")
        parted.insert("\(device.name) \(gateway)")
        for link in device.links where link.gateway.process.name == gateway {
            link.cut(tellsDevice: false, tellsGateway: chance(50))
        }
        time.at(time.nowMs + ms, lane) { [self] in parted.remove("\(device.name) \(gateway)") }
    }

    /// Appends a foreign record, which is void for every reader.
    private func litter(_ partition: Int) {
        let values = ["{}", "no JSON", #"{"type":"insert"}"#, #"{"type":"seed","line":{}}"#]
        let keys = ["todo", "note", "~reel-x", "nobody"]
        let value = values[Int(pick(0...3))]
        let key = keys[Int(pick(0...3))]
        trace("log", "gets a foreign record at \(log.head(partition) + 1) of \(partition)")
        log.litter[partition].insert(log.head(partition) + 1)
        _ = log.append([LogAppend(key: Array(key.utf8), value: Array(value.utf8))], to: partition)
    }

    // MARK: HTTP

    /// Answers a request to a gateway, or to a snapshot node to which the gateway forwards it.
    func answer(_ target: String, at gateway: SimulatedGateway, then: @escaping (Int, [UInt8]) -> Void) {
        let parts = target.split(separator: "?")
        let path = parts[0].split(separator: "/")
        guard path.count > 3, let stream = StreamName(String(path[2])) else { return then(404, []) }
        var query: [Substring: Int64] = [:]
        var epoch: Epoch?
        for pair in parts.count > 1 ? parts[1].split(separator: "&") : [] {
            let sides = pair.split(separator: "=")
            guard sides.count == 2 else { continue }
            if sides[0] == "epoch" { epoch = Epoch(String(sides[1])) } else { query[sides[0]] = Int64(sides[1]) }
        }
        if path[3] == "events" {
            return gateway.events(
                of: stream,
                after: query["after"] ?? -1,
                epoch: epoch,
                limit: Int(query["limit"] ?? 1_000),
                then: then
            )
        }
        guard let node = snapshotNode(for: gateway) else {
            return then(503, Array(#"{"code":"node_behind"}"#.utf8))
        }
        let (status, body) = node.state(of: stream, after: path[3] == "delta" ? query["after"] ?? 0 : -1, epoch: epoch)
        then(status, body)
    }

    /// Returns the snapshot node that a gateway asks; nil: none is there.
    func snapshotNode(for gateway: SimulatedGateway) -> SimulatedSnapshotNode? {
        let alive = snapshotNodes.filter { $0.process.isAlive }
        return alive.first { _ in gateway.process.chance(50) } ?? alive.first
    }

    // MARK: Reports

    /// Reports that a rule was violated. Only the first report counts.
    func broken(_ message: String) {
        guard failure == nil else { return }
        failure = "\(time.nowMs) ms: \(message)"
        trace("judge", message)
    }

    func trace(_ who: String, _ what: @autoclosure () -> String) {
        tracer?("\(time.nowMs) \(who) \(what().trimmingCharacters(in: .newlines))")
    }
}
