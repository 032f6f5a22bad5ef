import Foundation
import ReelCore

@testable import ReelClient

/// A device: the real client on a simulated network, with its store on a real disk, and an app that uses it.
final class SimulatedDevice: @unchecked Sendable {
    let world: World
    let name: String
    let streams: [StreamName]
    let start: StartPosition
    private let folder: String
    private var lives = 0
    /// The user of the device, and the number of the store.
    var account: Account
    /// The others who have a store on it.
    var parked: [Account] = []
    /// The name that the user gets before the store is opened again.
    var nextName: String?
    /// The account is being deleted.
    var isErasing = false
    /// The account's store has noted its end, and was not deleted.
    private var isSignedOut = false
    /// True if the device has died in a sign-out and did not start again. Its file belongs to no user.
    var isStoreEmpty = false
    /// The client has deleted its store.
    var isErased = false
    /// The store's files were removed while the client runs.
    var isStoreRemoved = false
    private(set) var process: SimulatedProcess
    private(set) var client: SyncClient?
    private(set) var links: [SimulatedLink] = []
    /// How slowly it takes what it is sent, in bytes a millisecond.
    private let bytesPerMs: Int64
    var shown: [StreamName: Evidence.Shown] = [:]
    private var backup: (path: String, user: String)?
    private var count = 0

    /// A user of the device.
    struct Account {
        var user: String
        /// The file of the store, in the device's folder.
        var file: Int
    }

    init(_ world: World, _ name: String, streams: [StreamName]) {
        self.world = world
        self.name = name
        self.streams = streams
        folder = "\(world.folder)/\(name)"
        account = Account(user: name, file: 0)
        process = world.process(name)
        start = process.chance(60) ? .snapshot : process.chance(50) ? .beginning : .latest
        bytesPerMs = process.chance(20) && !world.hasRush ? process.pick(2...10) : 1_000
        try? FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    }

    var path: String { "\(folder)/\(account.file)" }
    private var transport: DeviceTransport { DeviceTransport(self) }

    // MARK: Life

    func begin() {
        process.round {
            do {
                let nodes = world.gatewayNames.map { "http://\($0)" }
                let gaps: SyncClient.GapSource = process.chance(50) ? .connection : .peers
                let client = try SyncClient(
                    nodes: nodes,
                    store: .file(path, user: world.hasUsers ? account.user : nil),
                    transport: transport,
                    gaps: gaps,
                    seed: process.random.next()
                )
                self.client = client
                // Some devices hold only a few objects in memory.
                let isSmall = process.chance(50)
                try client.assumeIsolated { client in
                    if isSmall { client.cacheBytes = 2_000 }
                    for stream in streams {
                        try client.open(stream.description, from: start)
                        hearOfWaiting(stream, client)
                    }
                }
                listen(client.assumeIsolated { $0.notices() })
            } catch {
                world.broken("\(name) could not open its store: \(error)")
            }
        }
        process.after(process.pick(10...500)) { [self] in use() }
        process.after(process.pick(10...4_000)) { [self] in type() }
        process.after(process.pick(10...2_000)) { [self] in look() }
        process.after(process.pick(1_000...10_000)) { [self] in leaveStream() }
    }

    private func listen(_ notices: SyncNotices) {
        let (world, name, process) = (world, name, process)
        Task(executorPreference: process) { [self] in
            for await notice in notices {
                world.trace(name, "\(notice)")
                switch notice {
                case .storeFailed("killed"): break
                case .storeFailed where isStoreRemoved: process.after(0) { [self] in beginWithoutStore() }
                // A stream without a place on the connection is polled, and must come to the same end.
                case .streamFailed(_, let reason) where reason.hasPrefix("limit:"): break
                case .streamFailed, .storeFailed: world.broken("\(name) gave up: \(notice)")
                default: break
                }
            }
        }
    }

    /// The promises that an earlier process got.
    func hear(of publication: PublishHandle) {
        let world = world
        Task(executorPreference: process) {
            guard let outcome = try? await publication.outcome() else { return }
            for token in world.tokens(in: publication.event.encoded(base: 0)) { world.settled(token, outcome) }
        }
    }

    /// It is gone between two commits. What it had committed lies on its disk.
    func kill(tellsGateways: Bool) {
        // What waits is told that nothing will come; nothing is committed or sent.
        process.round {
            client?.assumeIsolated { client in
                isSignedOut = isErasing && client.isEnding && client.failure == nil
                client.fail(ReelError(.internal, "killed"))
            }
        }
        client = nil
        for link in links where !link.isOver {
            link.forgetDevice()
            link.cut(tellsDevice: false, tellsGateway: tellsGateways)
        }
        links = []
        process.kill()
        isErasing = false
        if isSignedOut, !isErased {
            // The next client of the store finds it empty.
            world.lostStore(name)
            forgetStore()
            isStoreEmpty = true
        }
        isSignedOut = false
        if isErased { use(Account(user: newName(), file: newFile())) }
        isErased = false
        if isStoreRemoved { forgetStore() }
        isStoreRemoved = false
    }

    func restart() {
        process = world.process(name)
        takeName()
        isStoreEmpty = false
        begin()
    }

    /// Goes on with another store, or with an empty one.
    func use(_ account: Account) {
        self.account = account
        isStoreEmpty = false
        forgetStore()
    }

    /// Nothing of what was shown before counts for what comes.
    func forgetStore() {
        shown = [:]
        backup = nil
        nextName = nil
    }

    /// The number of a file that no account of the device has had.
    func newFile() -> Int {
        lives += 1
        return lives
    }

    // MARK: Backups

    /// Copies the store of a device that does not run.
    func backUp() {
        let copy = "\(folder)/backup"
        for ending in ["", "-wal"] {
            try? FileManager.default.removeItem(atPath: copy + ending)
            try? FileManager.default.copyItem(atPath: path + ending, toPath: copy + ending)
        }
        backup = (copy, account.user)
    }

    /// Puts an older store in the place of the one that was lost. False if there is none.
    func restoreBackup() -> Bool {
        guard let backup else { return false }
        account = Account(user: backup.user, file: newFile())
        for ending in ["", "-wal"] {
            try? FileManager.default.copyItem(atPath: backup.path + ending, toPath: path + ending)
        }
        shown = [:]
        world.restored(name)
        return true
    }

    // MARK: Network

    func connect(to node: String, _ receive: @escaping @Sendable (TransportEvent) -> Void) -> any TransportConnection {
        let gateway = String(node.dropFirst("http://".count))
        guard let there = world.gateways[gateway] else {
            let refusal = process.after(process.pick(0...5)) { receive(.closed("refused")) }
            return RefusedConnection(refusal: refusal)
        }
        links.removeAll(where: \.isOver)
        let user = world.hasUsers ? account.user : name
        let link = SimulatedLink(process, there, user: user, bytesPerMs: bytesPerMs, receive)
        if world.isParted(name, gateway) { link.cut(tellsDevice: false, tellsGateway: false) }
        links.append(link)
        link.open()
        return DeviceEnd(link: link)
    }

    /// Sends a request by HTTP; one with a body is a POST.
    func send(
        to node: String,
        _ target: String,
        _ body: [UInt8]?,
        _ receive: @escaping @Sendable (TransportResponse) -> Void
    ) -> DeviceRequest {
        let gateway = String(node.dropFirst("http://".count))
        let request = DeviceRequest(process, receive)
        request.limit = process.after(process.pick(5_000...15_000)) { request.give(.failed("no answer in time")) }
        guard let there = world.gateways[gateway], !process.chance(world.requestsFail) else {
            _ = process.after(process.pick(0...20)) { request.give(.failed("refused")) }
            return request
        }
        guard !world.isParted(name, gateway) else { return request }
        there.process.after(process.pick(0...20)) { [world] in
            let answer: (Int, [UInt8]) -> Void = { status, body in request.answer(status, body) }
            if let body {
                world.answer(target, body, at: there, then: answer)
            } else {
                world.answer(target, at: there, then: answer)
            }
        }
        return request
    }

    // MARK: The app

    private func use() {
        guard world.isWorking else { return }
        publish()
        process.after(process.chance(20) ? process.pick(0...10) : process.pick(20...world.paceMs)) { [self] in use() }
    }

    /// A text that no other event has.
    func newMark() -> String {
        count += 1
        return "\(name):\(lives):\(process.lane):\(count)"
    }

    private func publish() {
        guard let client else { return }
        let stream = streams[Int(process.pick(0...Int64(streams.count - 1)))]
        let items = client.assumeIsolated { $0.objects("item", of: stream) }.map(\.name.id)
        let page = client.assumeIsolated { $0.object("page", "one", of: stream) }
        var token: String?
        var base: ReadPosition?
        let event: SyncEvent
        let mark = newMark()
        func item() -> String { items.isEmpty ? "none" : items[Int(process.pick(0...Int64(items.count - 1)))] }
        switch process.pick(0...99) {
        case 0..<30:
            token = "tok:\(mark):"
            event = SyncEvent(
                .insert("item", id: "i:\(mark)", ["n": .number(Double(count)), "token": .string(token ?? "")])
            )
        case 30..<50:
            token = "tok:\(mark):"
            let add: ReelClient.FieldOperation = .change(add: [.string(token ?? "")], remove: [])
            event = SyncEvent(.update("page", id: "one", operations: ["tokens": add]))
        case 50..<60: event = SyncEvent(.insert("page", id: "one", ["title": .string(mark)]))
        case 60..<72:
            event = SyncEvent(.update("item", id: item(), ["n": .number(Double(count)), "by": .string(name)]))
        case 72..<80: event = SyncEvent(.delete("item", id: item()))
        case 80..<90:
            let text = Array((page?["text"]?.string ?? "").unicodeScalars)
            let offset = process.pick(0...Int64(text.count))
            base = page?.readAt
            // A letter that is deleted before it is sent would not come into the log.
            let rest = text[Int(offset)...].prefix(Int(process.pick(0...3))).prefix { !World.isLetter($0) }
            let splice = TextSplice(
                at: offset,
                removing: Int64(rest.count),
                inserting: process.chance(60) ? "ab c" : ""
            )
            event = SyncEvent(.update("page", id: "one", operations: ["text": .splice([splice])]))
        case 90..<94: event = SyncEvent(.update("page", id: "one", operations: ["views": .increment(1)]))
        case 94..<97:
            token = "tok:\(mark):"
            event = SyncEvent(
                batch: [
                    .insert("item", id: "i:\(mark)", ["token": .string(token ?? "")]),
                    .update("item", id: item(), ["n": .number(-1)]),
                ]
            )
        case 97:
            // Larger than some gateways take: refused here, or there with what stands before and behind it.
            let text = JSONValue.string(String(repeating: "x", count: 17_000))
            event = SyncEvent(.insert("item", id: "large:\(mark)", ["text": text]))
        default:
            let title = client.assumeIsolated { $0.confirmed("page", "one", of: stream) }?.fields["title"]
            let seq = title?.seq ?? -1
            event = SyncEvent(.update("page", id: "one", ["title": .string(mark)]).guarded(["title": seq]))
        }
        publish(event, to: stream, base: base, token: token)
    }

    /// Publishes an event; the judge holds against the log what becomes of it if it has a token.
    func publish(_ event: SyncEvent, to stream: StreamName, base: ReadPosition? = nil, token: String?) {
        guard let client else { return }
        world.trace(name, "publishes to \(stream): \(event)")
        let (world, name) = (world, name)
        Task(executorPreference: process) { [token, base] in
            do {
                let publication = try await client.stream(stream).publish(event, base: base)
                if let token { world.promised(token, stream, by: name) }
                let outcome = try await publication.outcome()
                if let token { world.settled(token, outcome) }
            } catch let error as ReelError
                where error.message == "killed"
                || [.tooLarge, .epochChanged, .closed, .storeLost].contains(error.code)
                || [.deleted, .noObject, .guard, .type, .range, .stale].contains(error.code)
            {
                // What the device's own view rejects, or what cannot be kept.
            } catch {
                world.broken("\(name) could not publish: \(error)")
            }
        }
    }

    /// Looks at what it shows, from time to time.
    private func look() {
        observe()
        process.after(process.pick(200...3_000)) { [self] in look() }
    }

    func observe() {
        guard let client else { return }
        client.assumeIsolated { client in
            // Without its store the client cannot read the objects that a new overlay needs.
            guard client.failure == nil else { return }
            for stream in streams {
                guard let state = client.opened[stream], let view = state.view else { continue }
                guard let number = world.store.number(of: view.fold.epoch) else {
                    world.broken("\(name) shows \(stream) of \(view.fold.epoch), which is no log")
                    continue
                }
                let (seq, before) = (view.seq, shown[stream])
                let place = Evidence.Shown(log: number, stream: stream, seq: seq)
                if let before, (number, seq) < (before.log, before.seq) {
                    world.broken("\(name) shows \(place), and had shown \(before)")
                }
                shown[stream] = place
                if view.covered.contiguous(after: -1) != seq {
                    world.broken("\(name) shows \(stream) up to \(seq), its coverage is \(view.covered)")
                }
                let (shown, made) = (Self.overlaid(state.look()), Self.overlaid(Self.overlay(of: state)))
                // The store may be lost without the client's knowledge. Then no new overlay can be made either.
                guard view.fold.storedObjects?.failure == nil else { continue }
                if shown != made {
                    world.broken("\(name) shows of its own events in \(stream) something else than if it looked anew")
                }
                if !state.isDirty, !showsItsState(state) {
                    world.broken("\(name) lets apps read in \(stream) something else than its state")
                }
                guard let digest = client.digest(of: state.opening) else { continue }
                world.observed(place, digest, by: name)
            }
        }
    }

    /// True if each object that an app can read is that of the fold with the queue laid over it.
    private func showsItsState(_ state: StreamState) -> Bool {
        guard let client else { return true }
        return ["item", "page"].allSatisfy { model in
            client.objects(model, of: state.name).allSatisfy { object in
                let key = Fold.key(model: model, id: object.name.id)
                let expected = state.overlay.covers(key) ? state.overlay.object(key) : state.fold?.object(key)
                let isRight = expected.map { SyncObject($0, readAt: object.readAt) == object } ?? false
                if !isRight {
                    let own = state.overlay.covers(key)
                    let seen = expected.map { "\(SyncObject($0, readAt: object.readAt))" } ?? "nothing"
                    world.trace(name, "apps read \(object) of \(state.name), not \(own ? "own" : "confirmed") \(seen)")
                }
                return isRight
            }
        }
    }

    private static func overlay(of state: StreamState) -> Overlay {
        Overlay(of: state.outbox, over: state.fold, stream: state.name, isComplete: state.sync.isComplete)
    }

    private static func overlaid(_ overlay: Overlay) -> [ObjectState] {
        overlay.numbers.keys.sorted { $0.lexicographicallyPrecedes($1) }.compactMap(overlay.object)
    }

    /// The work that is still to be done; nil: none.
    var isNotDone: String? {
        isQueueNotDone ?? (parked.isEmpty ? nil : "\(name) has \(parked.count) other accounts")
    }

    /// The condition that the present user's streams still wait for; nil: none.
    var isQueueNotDone: String? {
        guard let client else { return "\(name) is not there" }
        return client.assumeIsolated { client in
            for stream in streams {
                guard let state = client.opened[stream] else { return "\(name) has not opened \(stream)" }
                let head = world.log.head(stream.partition(of: world.log.partitions.count))
                let gaps = client.gaps(of: state.opening)
                guard state.seq == head, state.view?.fold.epoch == world.log.epoch, state.outbox.entries.isEmpty,
                    gaps.isEmpty
                else {
                    return "\(name) has \(stream) up to \(state.seq) of \(head), \(state.outbox.entries.count) events"
                        + " wait, gaps \(gaps.ranges), \(state.sync.state), connected with \(client.connectedNode ?? "none")"
                }
            }
            return nil
        }
    }
}

/// How a device's client reaches the world.
private final class DeviceTransport: SyncTransport, @unchecked Sendable {
    private let device: SimulatedDevice
    private let process: SimulatedProcess

    init(_ device: SimulatedDevice) {
        self.device = device
        process = device.process
    }

    var executor: any SerialExecutor { process }
    var nowMs: Int64 { process.nowMs }

    func check(_ node: String) {}

    func connect(to node: String, _ receive: @escaping @Sendable (TransportEvent) -> Void) -> any TransportConnection {
        device.connect(to: node, receive)
    }

    func get(
        from node: String,
        _ target: String,
        token: String?,
        _ receive: @escaping @Sendable (TransportResponse) -> Void
    ) -> any TransportHandle {
        device.send(to: node, target, nil, receive)
    }

    func post(
        to node: String,
        _ target: String,
        json body: [UInt8],
        token: String?,
        _ receive: @escaping @Sendable (TransportResponse) -> Void
    ) -> any TransportHandle {
        device.send(to: node, target, body, receive)
    }

    func after(_ ms: Int64, _ body: @escaping @Sendable () -> Void) -> any TransportHandle {
        process.after(ms) { body() }
    }

    func execute(_ body: @escaping @Sendable () -> Void) { body() }

    func onBatchEnd(_ body: @escaping @Sendable () -> Void) { process.beforeFlush(body) }
}

private struct RefusedConnection: TransportConnection {
    let refusal: Happening

    func send(_ text: [UInt8]) {}
    func ping(_ number: Int) {}
    func close() { refusal.cancel() }
}

/// A request by HTTP that is under way.
final class DeviceRequest: TransportHandle, @unchecked Sendable {
    private let process: SimulatedProcess
    private var receive: (@Sendable (TransportResponse) -> Void)?
    var limit: Happening?

    init(_ process: SimulatedProcess, _ receive: @escaping @Sendable (TransportResponse) -> Void) {
        self.process = process
        self.receive = receive
    }

    func cancel() {
        limit?.cancel()
        receive = nil
    }

    func give(_ response: TransportResponse) {
        guard let receive else { return }
        switch response {
        case .end, .failed: cancel()
        case .head, .body: break
        }
        receive(response)
    }

    /// The answer comes piece by piece, and sometimes not to its end.
    func answer(_ status: Int, _ body: [UInt8]) {
        var ms = process.pick(0...20)
        process.after(ms) { self.give(.head(status: status, length: Int64(body.count))) }
        var rest = body[...]
        while !rest.isEmpty {
            ms += process.pick(0...5)
            if process.chance(2) {
                process.after(ms) { self.give(.failed("cut off")) }
                return
            }
            let piece = Array(rest.prefix(Int(process.pick(1...4_000))))
            rest = rest.dropFirst(piece.count)
            process.after(ms) { self.give(.body(piece)) }
        }
        process.after(ms) { self.give(.end) }
    }
}
