import Foundation
import ReelClient
import ReelCore
import ReelNet

/// A node inside the device's process that takes almost no processor time: it serves a snapshot from a file and events
/// from memory. Everything happens on its loop, which is the client's executor.
final class ScriptedNode: SyncTransport, @unchecked Sendable {
    /// The bytes that a piece of an answer has at most, as a read of a socket.
    private static let pieceBytes = 64 << 10

    let loop: EventLoop
    private let snapshot: String
    /// The reason for which the node refuses each publish; nil: it answers none.
    private let refusal: ReelError?
    /// The last seq of the log.
    private var head: Seq
    /// The events after the snapshot, in order.
    private var log: [(stream: StreamName, event: DeliveredEvent)] = []
    private var connections: [ScriptedConnection] = []

    /// Creates a node whose snapshots lie in a file.
    ///
    /// - Parameters:
    ///   - snapshot: the path of the snapshot, which serves a stream of any name. The delta beside it has the last
    ///     event of the log.
    ///   - head: the last seq of the log.
    ///   - refusal: the reason for which the node refuses each publish; nil: it answers none.
    init(snapshot: String, head: Seq, refusal: ReelError? = nil) throws {
        loop = try EventLoop()
        (self.snapshot, self.head, self.refusal) = (snapshot, head, refusal)
    }

    deinit {
        loop.stop()
        loop.leave()
    }

    /// Appends an event to a stream, and sends it to the subscribers. `value` gets the seq of the event. From any
    /// thread.
    func append(to stream: StreamName, _ value: @escaping @Sendable (Seq) -> [UInt8]) {
        loop.execute { [self] in
            head += 1
            let event = DeliveredEvent(seq: head, value: value(head))
            log.append((stream, event))
            for connection in connections { connection.push(head) }
        }
    }

    // MARK: Transport

    var executor: any SerialExecutor { loop }
    var nowMs: Int64 { Int64(clamping: loop.now) }

    func check(_ node: String) {}

    func connect(to node: String, _ receive: @escaping @Sendable (TransportEvent) -> Void) -> any TransportConnection {
        let connection = ScriptedConnection(self, receive)
        loop.execute { [self] in
            connections.append(connection)
            receive(.opened)
        }
        return connection
    }

    func get(
        from node: String,
        _ target: String,
        token: String?,
        _ receive: @escaping @Sendable (TransportResponse) -> Void
    ) -> any TransportHandle {
        let request = ScriptedRequest()
        let parts = target.split(separator: "/")
        loop.execute { [self] in
            let path = target.contains("/delta?after=\(head - 1)&") ? DeviceSnapshot.delta(of: snapshot) : snapshot
            let isKnown = parts.count == 4 && (parts[3] == "snapshot" || path != snapshot)
            guard isKnown, let file = FileHandle(forReadingAtPath: path) else {
                return receive(.failed("found \(target), expected a snapshot or the delta of the last event"))
            }
            receive(.head(status: 200, length: nil))
            request.file = file
            send(pieceOf: request, named: String(parts[2]), receive)
        }
        return request
    }

    /// The node is of a build without POST requests.
    func post(
        to node: String,
        _ target: String,
        json body: [UInt8],
        token: String?,
        _ receive: @escaping @Sendable (TransportResponse) -> Void
    ) -> any TransportHandle {
        loop.execute {
            receive(.head(status: 404, length: 0))
            receive(.end)
        }
        return ScriptedRequest()
    }

    /// Sends a piece of the snapshot, and the next one in a later round of the loop. `name`: the stream that the first
    /// piece must name.
    private func send(
        pieceOf request: ScriptedRequest,
        named name: String?,
        _ receive: @escaping @Sendable (TransportResponse) -> Void
    ) {
        guard let file = request.file else { return }
        var piece = [UInt8](unsafeUninitializedCapacity: Self.pieceBytes) { buffer, count in
            count = max(0, Glibc.read(file.fileDescriptor, buffer.baseAddress, buffer.count))
        }
        guard !piece.isEmpty else {
            request.cancel()
            return receive(.end)
        }
        if let name { Self.rename(&piece, name) }
        receive(.body(piece))
        loop.execute { self.send(pieceOf: request, named: nil, receive) }
    }

    /// Replaces the name of the stream in the first line.
    private static func rename(_ piece: inout [UInt8], _ name: String) {
        guard let end = piece.firstIndex(of: UInt8(ascii: "\n")) else { return }
        let line = String(decoding: piece[..<end], as: UTF8.self)
        let renamed = line.replacingOccurrences(of: #""\#(DeviceSnapshot.stream)""#, with: #""\#(name)""#)
        piece.replaceSubrange(..<end, with: Array(renamed.utf8))
    }

    func after(_ ms: Int64, _ body: @escaping @Sendable () -> Void) -> any TransportHandle {
        let request = ScriptedRequest()
        request.timer = loop.timer(after: .milliseconds(ms)) { body() }
        return request
    }

    func execute(_ body: @escaping @Sendable () -> Void) {
        if loop.isCurrent { body() } else { loop.execute(body) }
    }

    func onBatchEnd(_ body: @escaping @Sendable () -> Void) { loop.beforeFlush(body) }

    // MARK: Frames

    fileprivate func received(_ frame: ClientFrame, on connection: ScriptedConnection) {
        switch frame.body {
        case .hello, .renew: connection.say(welcome)
        case .subscribe(let subscribe):
            var after = head
            if case .after(let seq) = subscribe.position { after = seq }
            let answer = ServerFrame.Subscribed(
                stream: subscribe.stream,
                epoch: DeviceSnapshot.epoch,
                partition: 0,
                first: 0,
                head: head,
                after: after
            )
            connection.say(.subscribed(answer), ref: frame.ref)
            connection.proven[subscribe.stream] = after
            connection.push(head)
        case .subscribeAll(let subscribes):
            for subscribe in subscribes { received(ClientFrame(.subscribe(subscribe), ref: frame.ref), on: connection) }
        case .unsubscribe(let stream): connection.proven[stream] = nil
        case .publish(let publish): refuse(publish, frame.ref, connection)
        case .fetch: break
        }
    }

    private var welcome: ServerFrame.Body {
        let limits = ServerFrame.Limits(
            frame: 1 << 20,
            event: 256 << 10,
            batch: 256,
            subscriptions: 1_000,
            fetch: 100_000
        )
        return .welcome(
            .init(
                node: "scripted",
                epoch: DeviceSnapshot.epoch,
                number: 0,
                deployment: Deployment(1),
                partitions: 1,
                limits: limits,
                pingS: 20
            )
        )
    }

    private func refuse(_ publish: ClientFrame.Publish, _ ref: [UInt8]?, _ connection: ScriptedConnection) {
        guard let refusal else { return }
        for bytes in publish.events {
            var intake = EventIntake(limit: 256 << 10)
            var value: [UInt8] = []
            let stamp = EventIntake.Stamp(by: nil, atMs: 0, base: head)
            guard (try? bytes.withUnsafeBytes { try intake.take($0, stamp: stamp, into: &value) }) != nil else {
                continue
            }
            let (site, op) = (intake.event.site, intake.event.op)
            connection.say(.nack(.init(stream: publish.stream, site: site, op: op, error: refusal)), ref: ref)
        }
    }

    fileprivate func events(of stream: StreamName, after: Seq) -> [DeliveredEvent] {
        log.filter { $0.stream == stream && $0.event.seq > after }.map(\.event)
    }

    fileprivate func ended(_ connection: ScriptedConnection) { connections.removeAll { $0 === connection } }
}

/// A connection with a scripted node.
private final class ScriptedConnection: TransportConnection, @unchecked Sendable {
    private let node: ScriptedNode
    private var receive: (@Sendable (TransportEvent) -> Void)?
    /// The last proven seq of each subscription.
    var proven: [StreamName: Seq] = [:]

    init(_ node: ScriptedNode, _ receive: @escaping @Sendable (TransportEvent) -> Void) {
        (self.node, self.receive) = (node, receive)
    }

    func send(_ text: [UInt8]) {
        node.loop.execute { [self] in
            guard receive != nil, let frame = text.withUnsafeBytes({ try? ClientFrame($0) }) else { return }
            node.received(frame, on: self)
        }
    }

    func ping(_ number: Int) { node.loop.execute { self.receive?(.pong(number)) } }

    func close() {
        receive = nil
        node.ended(self)
    }

    func say(_ body: ServerFrame.Body, ref: [UInt8]? = nil) {
        receive?(.text(ServerFrame(body, ref: ref).encoded()))
    }

    /// Sends what the subscriptions lack up to a seq.
    func push(_ head: Seq) {
        for (stream, after) in proven where after < head {
            proven[stream] = head
            let events = node.events(of: stream, after: after)
            say(.events(.init(stream: stream, from: after + 1, to: head, events: events)))
        }
    }
}

/// A request or a timer of a scripted node. Used on the loop only.
private final class ScriptedRequest: TransportHandle, @unchecked Sendable {
    var file: FileHandle?
    var timer: LoopTimer?

    func cancel() {
        file = nil
        timer?.cancel()
        timer = nil
    }
}
