import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// Devices whose sites an operator retires, while they are connected or away.
@Suite(.timeLimit(.minutes(5))) struct RetiredDeviceTests {
    private let name = StreamName("s")!

    /// The place of a device's last event when the site is retired.
    enum Last: CaseIterable {
        /// The log never gets it.
        case lost
        /// The log has it, and the device has heard nothing about it.
        case arrived
    }

    private func add(_ stream: SyncStream) async throws -> PublishHandle {
        try await stream.publish(.update("m", id: "0", operations: ["n": .increment(1)]))
    }

    /// Returns the number of `add` calls that the log has.
    private func count(_ network: FakeNetwork) async throws -> Double? {
        let value = try await network.on { [name] network in
            network.fold(name).object(model: "m", id: "0").map {
                SyncObject($0, readAt: .init(epoch: nil, seq: 0, withdrawals: .max))["n"]
            }
        }
        guard case .number(let number)?? = value else { return nil }
        return number
    }

    /// Returns for each site of the stream whether it has ended.
    private func sites(_ network: FakeNetwork) async throws -> [Bool] {
        try await network.on { [name] network in
            let fold = network.fold(name)
            return fold.sites().compactMap { fold.site($0) }.map { $0.end != .none }
        }
    }

    @Test("a connected device continues under a new site after its site is retired, and notifies the app")
    func retiredWhileConnected() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let notices = await client.notices()
        let stream = try await client.open("s")
        try await stream.publish(.insert("m", id: "0", ["n": 0])).outcome()
        try await add(stream).outcome()
        try await network.on { [name] network in network.retire(before: network.head, name) }
        for _ in 0..<3 {
            guard case .applied = try await add(stream).outcome() else { throw NeverCame(description: "applied") }
        }
        #expect(try await count(network) == 4)
        #expect(try await sites(network).sorted { !$0 && $1 } == [false, true])
        for await case .newSite("s", let was, let now) in notices {
            #expect(was != now)
            break
        }
        #expect(await client.statistics.reconnects == 0, "the node has taken nothing amiss")
        await client.close()
    }

    @Test("the fold applies an event after the retirement barrier once, under the new site")
    func eventAfterBarrier() async throws {
        let network = try FakeNetwork()
        let client = try network.client()
        let stream = try await client.open("s")
        try await stream.publish(.insert("m", id: "0", ["n": 0])).outcome()
        try await add(stream).outcome()
        // The log gets the barrier before the events of the next publish. The device gets both together.
        try await network.on { [name] network in
            network.isSilent = true
            network.retire(before: network.head, name)
        }
        let publications = [try await add(stream), try await add(stream)]
        for publication in publications { _ = try await publication.acked() }
        try await network.on { network in
            network.isSilent = false
            network.pushAll()
        }
        for publication in publications {
            guard case .applied = try await publication.outcome() else { throw NeverCame(description: "applied") }
        }
        #expect(try await count(network) == 3)
        #expect(await client.statistics.reconnects == 0)
        await client.close()
    }

    /// Takes the device offline, and retires its site.
    /// - Parameters:
    ///   - last: where the last event of the device is at that moment.
    ///   - isForgotten: events follow until the horizon passes the retirement, so that the stream forgets the site.
    ///   - isNewEpoch: a new epoch begins after that.
    private func beRetired(
        _ network: FakeNetwork,
        _ path: String,
        _ last: Last,
        isForgotten: Bool,
        isNewEpoch: Bool
    ) async throws {
        try await leave(network, path, last)
        try await network.on { [name] network in
            network.retire(before: network.head, name)
            if isForgotten { for _ in 0..<16 * 4_096 { network.author(.noop) } }
            if isNewEpoch { network.goOver(to: Epoch(2), lagging: []) }
            network.down = []
        }
    }

    @Test("the fold applies each event once if a device returns after its site was retired", arguments: Last.allCases)
    func returns(last: Last) async throws {
        for isNewEpoch in [false, true] {
            let network = try FakeNetwork()
            let path = temporaryPath()
            defer { removeStore(path) }
            try await beRetired(network, path, last, isForgotten: false, isNewEpoch: isNewEpoch)
            let client = try network.client(store: .file(path))
            let notices = await client.notices()
            let stream = try await client.open("s")
            try await eventually { await stream.pendingCount == 0 }
            #expect(try await count(network) == 3, "one was seen, one was sent, one was not")
            try await add(stream).outcome()
            #expect(try await count(network) == 4)
            for await case .newSite in notices { break }
            await client.close()
        }
    }

    @Test("a device that returns after its site was forgotten sends no event twice", arguments: Last.allCases)
    func returnsLate(last: Last) async throws {
        for isNewEpoch in [false, true] {
            let network = try FakeNetwork()
            let path = temporaryPath()
            defer { removeStore(path) }
            try await beRetired(network, path, last, isForgotten: true, isNewEpoch: isNewEpoch)
            let before = last == .arrived ? 2.0 : 1
            #expect(try await count(network) == before)
            let client = try network.client(store: .file(path))
            let notices = await client.notices()
            let stream = try await client.open("s")
            try await eventually { await stream.pendingCount == 0 }
            #expect(try await count(network) == before + 1, "only what was never sent has gone")
            for await case .notApplied("s", _, let outcome) in notices {
                #expect(outcome == .unknown(Outbox.forgotten))
                break
            }
            for await case .newSite in notices { break }
            try await add(stream).outcome()
            #expect(try await count(network) == before + 2)
            await client.close()
        }
    }

    @Test("a device that is new to the stream begins its site after a barrier with the events that it made before")
    func new() async throws {
        let network = try FakeNetwork()
        try await network.on { [name] network in
            for id in 0..<3 { network.author(.insert("m", id: "\(id)", ["n": 0])) }
            network.retire(before: 0, name)
        }
        let path = temporaryPath()
        defer { removeStore(path) }
        try await network.on { $0.down = ["a"] }
        let offline = try network.client(store: .file(path))
        _ = try await add(offline.open("s"))
        await offline.close()
        try await network.on { $0.down = [] }
        let client = try network.client(store: .file(path))
        let stream = try await client.open("s")
        try await eventually { await stream.pendingCount == 0 }
        let log = try await network.on { $0.log.count }
        #expect(log == 5, "the first attempt is the last")
        #expect(try await count(network) == 1)
        await client.close()
    }

    /// Makes a device that has published three times. One event was seen in the stream, one was sent, and one waits.
    private func leave(_ network: FakeNetwork, _ path: String, _ last: Last) async throws {
        let client = try network.client(store: .file(path))
        let stream = try await client.open("s")
        try await stream.publish(.insert("m", id: "0", ["n": 0])).outcome()
        try await add(stream).outcome()
        try await network.on { network in
            if last == .lost {
                network.losesPublishes = true
            } else {
                (network.isSilent, network.dropsAcks) = (true, true)
            }
        }
        let opened = try await network.on { ($0.opened, $0.head) }
        _ = try await add(stream)
        try await eventually {
            (try? await network.on { last == .lost ? $0.opened > opened.0 : $0.head > opened.1 }) == true
        }
        try await network.on { $0.kill("a") }
        _ = try await add(stream)
        await client.close()
        try await network.on { ($0.losesPublishes, $0.isSilent, $0.dropsAcks) = (false, false, false) }
    }
}
