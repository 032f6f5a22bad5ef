import Foundation
import ReelClient
import ReelCore
import ReelNet
import ReelNode
import Synchronization
import TestSupport
import Testing

@testable import ReelGateway

/// A client of a gateway that reaches it in one of several ways. All of them must see the same events.
protocol Door: Sendable {
    /// Publishes events that each insert an object. Returns once all are acked.
    func publish(_ ids: [String], model: String, to stream: StreamName) async throws

    /// Begins to read a stream at its first event; of these models, if some are given.
    func open(_ stream: StreamName, models: [String]?) async throws

    /// The ids of the objects that have come so far from the stream that was opened, in the order of the stream. The
    /// SDK holds no events, so its objects are in the order of their ids.
    func ids() async throws -> [String]

    func close() async
}

/// The ways into a gateway.
enum DoorKind: CaseIterable {
    /// The gateway's own client object, without a network.
    case inProcess
    case socket, http, sdk

    /// Opens a door of this kind. `site` is the site of its events; the SDK chooses its own.
    func open(_ live: LiveGateway, site: Site) async throws -> any Door {
        switch self {
        case .inProcess: try await InProcessDoor(live, site)
        case .socket: SocketDoor(try await live.connect(), site)
        case .http: HTTPDoor(live, site)
        case .sdk: try SDKDoor(live)
        }
    }
}

/// The events of a site, each with its op.
private final class SentEvents: Sendable {
    private let site: Site
    private let next = Mutex<Op>(0)

    init(_ site: Site) { self.site = site }

    func events(_ ids: [String], _ model: String) -> [[UInt8]] {
        ids.map { id in
            let op = next.withLock { next in
                defer { next += 1 }
                return next
            }
            return EventText.sent("insert", site, op, #""model":"\#(model)","id":"\#(id)","fields":{"n":1}"#).bytes
        }
    }
}

/// Returns the ids of the objects that the frames of one stream insert. Each frame must continue where the proofs
/// before it end.
private func insertedIDs(in frames: [ServerFrame.Body]) throws -> [String] {
    var (ids, proven) = ([String](), Seq.none)
    for frame in frames {
        switch frame {
        case .events(let part):
            #expect(part.from == proven + 1)
            proven = part.to
            for event in part.events {
                let id = try event.value.withUnsafeBytes { bytes in
                    try JSONObject(bytes, levels: Limits.depth, shape: .internal).string("id")
                }
                ids.append(try #require(id))
            }
        case .upto(_, let seq): proven = max(proven, seq)
        default: break
        }
    }
    return ids
}

private struct InProcessDoor: Door {
    private let client: LoopBound<SocketClient>
    private let wire: LoopBound<Wire>
    private let sent: SentEvents

    init(_ live: LiveGateway, _ site: Site) async throws {
        let part = live.gateway.parts[0]
        (client, wire) = try await part.loop.run {
            let (client, wire) = (SocketClient(part.value.gateway, access: Access(nil)), Wire())
            client.opened(on: wire)
            client.received(text: Array(#"{"t":"hello","client":"test/1"}"#.utf8))
            return (LoopBound(client, on: part.loop), LoopBound(wire, on: part.loop))
        }
        sent = SentEvents(site)
    }

    private func send(_ body: ClientFrame.Body) async throws {
        try await client.loop.run { client.value.received(text: ClientFrame(body, ref: nil).encoded()) }
    }

    private func frames() async throws -> [ServerFrame.Body] { try await wire.loop.run { wire.value.frames } }

    private func acks() async throws -> Int {
        try await frames().reduce(0) { if case .ack(let ack) = $1 { $0 + ack.acks.count } else { $0 } }
    }

    func publish(_ ids: [String], model: String, to stream: StreamName) async throws {
        let goal = try await acks() + ids.count
        try await send(.publish(.init(stream: stream, events: sent.events(ids, model))))
        try await eventually("the acks") { try await acks() == goal }
    }

    func open(_ stream: StreamName, models: [String]?) async throws {
        try await send(.subscribe(.init(stream: stream, position: .after(-1), models: models)))
    }

    func ids() async throws -> [String] { try insertedIDs(in: try await frames()) }

    func close() async { try? await client.loop.run { client.value.closed() } }
}

private struct SocketDoor: Door {
    private let socket: TestSocket
    private let sent: SentEvents

    init(_ socket: TestSocket, _ site: Site) { (self.socket, sent) = (socket, SentEvents(site)) }

    func publish(_ ids: [String], model: String, to stream: StreamName) async throws {
        socket.send(.publish(.init(stream: stream, events: sent.events(ids, model))))
        var count = 0
        while count < ids.count { count += try await socket.nextAck().acks.count }
    }

    func open(_ stream: StreamName, models: [String]?) async throws {
        socket.send(.subscribe(.init(stream: stream, position: .after(-1), models: models)))
    }

    func ids() async throws -> [String] { try insertedIDs(in: socket.heard.map(\.body)) }

    func close() async { socket.close() }
}

private final class HTTPDoor: Door {
    private let live: LiveGateway
    private let sent: SentEvents
    private let target = Mutex("")
    private let read = Mutex<(ids: [String], last: Int)>(([], -1))

    init(_ live: LiveGateway, _ site: Site) { (self.live, sent) = (live, SentEvents(site)) }

    func publish(_ ids: [String], model: String, to stream: StreamName) async throws {
        let events = sent.events(ids, model).map { String(decoding: $0, as: UTF8.self) }.joined(separator: ",")
        let answer = try await live.ask("POST", "/v1/streams/\(stream)/events", body: #"{"events":[\#(events)]}"#)
        guard answer.status == 200 else { throw DoorError(answer: String(decoding: answer.body, as: UTF8.self)) }
    }

    func open(_ stream: StreamName, models: [String]?) async throws {
        let filter = models.map { "&models=" + $0.joined(separator: ",") } ?? ""
        target.withLock { $0 = "/v1/streams/\(stream)/events?limit=10000\(filter)" }
    }

    func ids() async throws -> [String] {
        let after = read.withLock { $0.last }
        let answer = try await live.get(target.withLock { $0 } + "&after=\(after)")
        let body = try JSONSerialization.jsonObject(with: Data(answer.body)) as? [String: Any]
        guard answer.status == 200, let to = body?["to"] as? Int, let events = body?["events"] as? [[String: Any]]
        else {
            throw DoorError(answer: String(decoding: answer.body, as: UTF8.self))
        }
        return read.withLock { read in
            read.ids += events.compactMap { $0["id"] as? String }
            read.last = to
            return read.ids
        }
    }

    func close() async {}
}

private struct DoorError: Error {
    var answer: String
}

private final class SDKDoor: Door {
    private let client: SyncClient
    private let stream = Mutex<SyncStream?>(nil)

    init(_ live: LiveGateway) throws {
        client = try SyncClient(
            nodes: ["http://\(live.gateway.address)"],
            store: .memory,
            transport: try NetTransport()
        )
    }

    func publish(_ ids: [String], model: String, to stream: StreamName) async throws {
        let open = try await client.open(stream.description, from: .beginning)
        for id in ids { try await open.publish(.insert(model, id: id, ["n": 1])).outcome() }
    }

    func open(_ stream: StreamName, models: [String]?) async throws {
        let open = try await client.open(stream.description, from: .beginning)
        self.stream.withLock { $0 = open }
    }

    func ids() async throws -> [String] {
        // The objects of a model are sorted by their ids, as the tests send them.
        try stream.withLock { $0 }?.confirmed.objects("task").map(\.id.id) ?? []
    }

    func close() async { await client.close() }
}
