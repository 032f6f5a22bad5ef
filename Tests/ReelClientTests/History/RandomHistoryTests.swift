import ReelBase
import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// Mirrors of a stream that random devices edit.
@Suite(.timeLimit(.minutes(5))) struct RandomHistoryTests {
    /// The device, its network, and what happens to them.
    private struct World {
        let network: FakeNetwork
        let path: String
        var chance: SeededGenerator
        var client: SyncClient
        var stream: SyncStream
        var step = 0
        var epochs: UInt64 = 1

        init(seed: UInt64, path: String) async throws {
            (network, chance, self.path) = (try FakeNetwork(seed: seed), SeededGenerator(seed: seed), path)
            network.haste = 20
            client = try network.client(store: .file(path), seed: seed)
            stream = try await client.open("s")
            try await eventually { [stream] in stream.status.content == .upToDate }
        }

        mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &chance) < percent }

        /// The id of an object that a device may write. Ids of deleted objects are replaced by others in time.
        mutating func id(_ author: String) -> String {
            "\(chance(50) ? author : "b")\(Int.random(in: 0..<3, using: &chance) + step / 20)"
        }

        mutating func event(by author: String) -> SyncEvent {
            let (id, value) = (id(author), JSONValue.string("\(author)\(step)"))
            let field = ["x", "y", "z"].randomElement(using: &chance) ?? "x"
            return switch Int.random(in: 0..<6, using: &chance) {
            case 0...1: .insert("m", id: id, [field: value])
            case 2: .delete("m", id: id)
            default: .update("m", id: id, [field: value])
            }
        }

        /// Publishes an event that the stream rejects, because another device has written an object of it meanwhile.
        mutating func publishGuarded() async throws {
            let shared = try stream.confirmed.objects("m").first { $0.name.id.hasPrefix("b") && $0["x"] != nil }
            guard let shared, let seq = shared.fields["x"]?.seq else { return }
            let (own, both) = ("o\(step / 20)", shared.name.id)
            let value = JSONValue.string("o\(step)")
            let other = SyncEvent.update("m", id: both, ["x": .string("r\(step)")])
            try await network.on { $0.author(other) }
            let guarded = SyncChange.update("m", id: both, ["x": value]).guarded(["x": seq])
            let batch = [SyncChange.update("m", id: own, ["x": value]), guarded]
            _ = try? await stream.publish(SyncEvent(batch: stream.object("m", id: own) == nil ? [guarded] : batch))
        }

        mutating func editElsewhere(isSilent: Bool) async throws {
            let events = (0..<2).map { _ in event(by: "r") }
            try await network.on { network in
                for event in events { network.author(event) }
                if !isSilent { network.pushAll() }
            }
        }

        /// The device sleeps, and takes a delta or a snapshot when it returns.
        mutating func load() async throws {
            let (events, isSnapshot) = ((0..<4).map { _ in event(by: "r") }, chance(50))
            try await network.on { network in
                network.answers["a"] = { target, _ in
                    isSnapshot && target.contains("/delta") ? (410, Array(#"{"code":"truncated"}"#.utf8)) : nil
                }
                for event in events { network.author(event) }
                network.skip(Int(StreamSync.deltaFromSeqs))
                for connection in network.connections { connection.end("reset") }
            }
            try await catchUp()
        }

        mutating func beginEpoch() async throws {
            epochs += 1
            let epoch = Epoch(epochs)
            try await network.on { $0.goOver(to: epoch, lagging: []) }
            try await eventually { [stream] in await stream.epoch == epoch }
            try await catchUp()
        }

        mutating func restart(isCalm: Bool) async throws {
            // A client that has missed events takes a delta in place of them.
            if isCalm { try await catchUp() }
            if isCalm { try await eventually { [stream] in await stream.pendingCount == 0 } }
            await client.close()
            client = try network.client(store: .file(path), seed: .random(in: 0..<1 << 40, using: &chance))
            stream = try await client.open("s")
            if isCalm { try await eventually { [stream] in stream.status.content == .upToDate } }
        }

        func catchUp() async throws {
            let head = try await network.on { network in
                network.pushAll()
                return network.head
            }
            try await eventually { await stream.seq >= head }
        }
    }

    @Test("mirrors that ask at any time have the objects in the end, and each origin is right")
    func mirrors() async throws {
        var origins: ObjectChange.Origin = []
        try await Seeds.runAsync(9) { seed in
            let path = temporaryPath()
            defer { removeStore(path) }
            var world = try await World(seed: seed, path: path)
            // Without loads and guards the origins of objects with one author are exact.
            let isCalm = seed % 3 == 0
            if !isCalm { try await world.network.on { $0.breaksPercent = 5 } }
            var mirrors = [ChangeMirror(), ChangeMirror()]
            for step in 0..<80 {
                world.step = step
                switch Int.random(in: 0..<20, using: &world.chance) {
                case 0...5: _ = try? await world.stream.publish(world.event(by: "o"))
                case 6...10: try await world.editElsewhere(isSilent: !isCalm && world.chance(30))
                case 11...12 where !isCalm: try await world.publishGuarded()
                case 13 where !isCalm && world.chance(30): try await world.load()
                case 14 where !isCalm && world.chance(30): try await world.beginEpoch()
                case 15: try await world.restart(isCalm: isCalm)
                default: try await mirrors[step % 2].follow(world.stream)
                }
            }
            try await eventually { await world.stream.pendingCount == 0 }
            try await world.catchUp()
            let requests = try await world.network.on { $0.requests }
            let loads: ObjectChange.Origin = requests.contains { $0.contains("/delta") } ? .load : []
            for index in mirrors.indices {
                try await mirrors[index].follow(world.stream)
                // Only the first answer, and none of the later ones, is a reset.
                #expect(mirrors[index].resets == 1, "seed \(seed)")
                let found = mirrors[index].origins
                for origin in found.values { origins.formUnion(origin) }
                guard isCalm else { continue }
                #expect(found["o", default: []].isSubset(of: loads.union(.own)), "seed \(seed)")
                #expect(found["r", default: []].isSubset(of: loads.union(.remote)), "seed \(seed)")
                #expect(found["b", default: []].isSubset(of: loads.union([.own, .remote, .withdrawn])), "seed \(seed)")
            }
            await world.client.close()
        }
        #expect(TestSeed.given != nil || origins == [.own, .remote, .load, .withdrawn], "the runs have too few causes")
    }
}
