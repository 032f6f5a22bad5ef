import EventLogConformance
import ReelCore
import ReelLog
import TestSupport
import Testing

@testable import ReelGateway

/// Tests that a stream is the same through every door of a gateway: in process, over a socket, over HTTP, and through
/// the SDK.
@Suite(.timeLimit(.minutes(15))) struct DoorTests {
    private let todo = StreamName("todo")!

    private func ids(_ numbers: Range<Int>) -> [String] { numbers.map { String(10_000 + $0) } }

    /// Waits until a door has read these objects, and no others.
    private func expect(_ ids: [String], through door: any Door, _ kind: DoorKind) async throws {
        try await eventually("\(kind) reads \(ids.count) objects") { try await door.ids().count >= ids.count }
        #expect(try await door.ids() == ids, "\(kind)")
    }

    /// Opens a door of each kind, and closes all of them at the end.
    private func withDoors(
        _ live: LiveGateway,
        _ body: ([(kind: DoorKind, door: any Door)]) async throws -> Void
    ) async throws {
        var doors: [(kind: DoorKind, door: any Door)] = []
        for (number, kind) in DoorKind.allCases.enumerated() {
            doors.append((kind, try await kind.open(live, site: Site(high: 1, low: UInt64(number)))))
        }
        let result: Result<Void, any Error>
        do { result = .success(try await body(doors)) } catch { result = .failure(error) }
        for (_, door) in doors { await door.close() }
        try result.get()
    }

    @Test("every door reads what any door publishes, also what came before", arguments: DoorKind.allCases)
    func everyPair(writer: DoorKind) async throws {
        try await LiveGateway.with { live in
            try await withDoors(live) { doors in
                let from = doors.first { $0.kind == writer }!.door
                try await from.publish(ids(0..<3), model: "task", to: todo)
                for (_, door) in doors { try await door.open(todo, models: nil) }
                for (kind, door) in doors { try await expect(ids(0..<3), through: door, kind) }
                try await from.publish(ids(3..<6), model: "task", to: todo)
                for (kind, door) in doors { try await expect(ids(0..<6), through: door, kind) }
            }
        }
    }

    @Test("every door reads the events of all doors in the same order") func oneOrder() async throws {
        try await LiveGateway.with { live in
            try await withDoors(live) { doors in
                for (_, door) in doors { try await door.open(todo, models: nil) }
                var sent = 0
                for _ in 0..<5 {
                    for (_, door) in doors {
                        try await door.publish(ids(sent..<sent + 1), model: "task", to: todo)
                        sent += 1
                    }
                }
                for (kind, door) in doors { try await expect(ids(0..<sent), through: door, kind) }
            }
        }
    }

    /// The events come from the ring, or from pages of the log, or from both.
    @Test("every door catches up on a stream", arguments: [1, 100_000, 32 << 20])
    func catchesUp(ringBytes: Int) async throws {
        let log = try MemoryLog(partitions: 1)
        let site = Site(high: 9, low: 9)
        let events = (0..<4_000).map { index in
            let id = String(10_000 + index)
            let (op, fields) = (Op(index / 2), #"{"n":1}"#)
            let text = EventText.logged("insert", site, op, base: -1, at: 1, model: "task", id: id, fields: fields)
            return LogAppend(key: index % 2 == 0 ? todo.key : Array("other".utf8), value: text.bytes)
        }
        log.append(events, to: 0) { _ in }
        try await LiveGateway.with(log) {
            $0.ringBytes = ringBytes
            $0.frameBytes = 20_000
        } _: { live in
            try await withDoors(live) { doors in
                for (_, door) in doors { try await door.open(todo, models: nil) }
                let wanted = stride(from: 10_000, to: 14_000, by: 2).map(String.init)
                for (kind, door) in doors { try await expect(wanted, through: door, kind) }
            }
        }
    }

    /// The SDK reads whole streams.
    @Test("every door with a filter reads the models that it names") func filter() async throws {
        try await LiveGateway.with { live in
            try await withDoors(live) { doors in
                let writer = doors[0].door
                try await writer.publish(ids(0..<2), model: "task", to: todo)
                try await writer.publish(ids(2..<4), model: "note", to: todo)
                let filtered = doors.filter { $0.kind != .sdk }
                for (_, door) in filtered { try await door.open(todo, models: ["note"]) }
                for (kind, door) in filtered { try await expect(ids(2..<4), through: door, kind) }
                try await writer.publish(ids(4..<5), model: "task", to: todo)
                try await writer.publish(ids(5..<6), model: "note", to: todo)
                for (kind, door) in filtered { try await expect(ids(2..<4) + ids(5..<6), through: door, kind) }
            }
        }
    }
}
