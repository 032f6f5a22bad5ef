import EventLogConformance
import ReelCore
import ReelLog
import ReelNode
import TestSupport
import Testing

@testable import ReelGateway

/// Tests that a stream is the same through every door of a gateway: in process, over a socket, over HTTP, and through
/// the SDK.
@Suite(.timeLimit(.minutes(15))) struct DoorTests {
    private typealias Doors = [(kind: DoorKind, door: any Door)]
    private let todo = StreamName("todo")!

    private func ids(_ numbers: Range<Int>) -> [String] { numbers.map { String(10_000 + $0) } }

    /// Waits until each door has read these objects, and no others.
    private func expect(_ ids: [String], through doors: Doors) async throws {
        for (kind, door) in doors {
            try await eventually("\(kind) reads \(ids.count) objects") { try await door.ids().count >= ids.count }
            #expect(try await door.ids() == ids, "\(kind)")
        }
    }

    /// Publishes one more object, which each door must read next. So a door that gets something twice is found.
    private func expectNothingElse(after ids: [String], through doors: Doors, model: String = "task") async throws {
        try await doors[0].door.publish(["99999"], model: model, to: todo)
        try await expect(ids + ["99999"], through: doors)
    }

    /// Opens a door of each kind to a gateway with two loops, and closes all of them at the end.
    private func withDoors(
        _ log: MemoryLog? = nil,
        _ change: (inout GatewaySettings) -> Void = { _ in },
        _ body: (LiveGateway, Doors) async throws -> Void
    ) async throws {
        try await LiveGateway.with(log) {
            $0.node.loops = 2
            change(&$0)
        } _: { live in
            var doors: Doors = []
            let result: Result<Void, any Error>
            do {
                for (number, kind) in DoorKind.allCases.enumerated() {
                    doors.append((kind, try await kind.open(live, site: Site(high: 1, low: UInt64(number)))))
                }
                result = .success(try await body(live, doors))
            } catch {
                result = .failure(error)
            }
            for (_, door) in doors { await door.close() }
            try result.get()
        }
    }

    @Test("every door reads what any door publishes, also what came before", arguments: DoorKind.allCases)
    func everyPair(writer: DoorKind) async throws {
        try await withDoors { _, doors in
            let from = doors.first { $0.kind == writer }!.door
            try await from.publish(ids(0..<3), model: "task", to: todo)
            for (_, door) in doors { try await door.open(todo, models: nil) }
            try await expect(ids(0..<3), through: doors)
            try await from.publish(ids(3..<6), model: "task", to: todo)
            try await expect(ids(0..<6), through: doors)
            try await expectNothingElse(after: ids(0..<6), through: doors)
        }
    }

    @Test("every door reads the events of all doors in the same order") func oneOrder() async throws {
        try await withDoors { _, doors in
            for (_, door) in doors { try await door.open(todo, models: nil) }
            var sent = 0
            for _ in 0..<5 {
                for (_, door) in doors {
                    try await door.publish(ids(sent..<sent + 1), model: "task", to: todo)
                    sent += 1
                }
            }
            try await expect(ids(0..<sent), through: doors)
            try await expectNothingElse(after: ids(0..<sent), through: doors)
        }
    }

    /// The events come from pages of the log, from both, or from the ring. The ring keeps at least the last batch of
    /// the tail, which has at most 1 MiB.
    @Test("every door catches up on a stream", arguments: [(1, true), (1_500_000, true), (32 << 20, false)])
    func catchesUp(ringBytes: Int, readsLog: Bool) async throws {
        let log = try MemoryLog(partitions: 1)
        let site = Site(high: 9, low: 9)
        let fields = #"{"text":"\#(String(repeating: "x", count: 500))"}"#
        let records = (0..<4_000).map { index in
            let (op, id) = (Op(index / 2), String(10_000 + index))
            let text = EventText.logged("insert", site, op, base: -1, at: 1, model: "task", id: id, fields: fields)
            return LogAppend(key: index % 2 == 0 ? todo.key : Array("other".utf8), value: text.bytes)
        }
        log.append(records, to: 0) { _ in }
        try await withDoors(log) {
            $0.ringBytes = ringBytes
            $0.frameBytes = 20_000
        } _: { live, doors in
            for (_, door) in doors { try await door.open(todo, models: nil) }
            let wanted = stride(from: 10_000, to: 14_000, by: 2).map(String.init)
            try await expect(wanted, through: doors)
            try await expectNothingElse(after: wanted, through: doors)
            let read = try await live.metric(#"reel_gateway_caught_up_events_total{source="log"}"#) ?? 0
            #expect(readsLog ? read >= 1_000 : read == 0)
        }
    }

    /// The SDK reads whole streams.
    @Test("every door with a filter reads the models that it names") func filter() async throws {
        try await withDoors { _, doors in
            let writer = doors[0].door
            try await writer.publish(ids(0..<2), model: "task", to: todo)
            try await writer.publish(ids(2..<4), model: "note", to: todo)
            let filtered = doors.filter { $0.kind != .sdk }
            for (_, door) in filtered { try await door.open(todo, models: ["note"]) }
            try await expect(ids(2..<4), through: filtered)
            try await writer.publish(ids(4..<5), model: "task", to: todo)
            try await writer.publish(ids(5..<6), model: "note", to: todo)
            try await expect(ids(2..<4) + ids(5..<6), through: filtered)
            try await expectNothingElse(after: ids(2..<4) + ids(5..<6), through: filtered, model: "note")
        }
    }
}
