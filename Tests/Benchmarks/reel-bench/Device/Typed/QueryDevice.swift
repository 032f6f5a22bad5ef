import Foundation
import Reel
import ReelClient
import ReelCore
import ScriptedNodes

/// A device that has loaded items from a scripted node into a file, with a live query whose rows arrive on the main
/// actor.
@MainActor final class QueryDevice {
    let count: Int
    let file: String
    private let node: ScriptedNode
    private let client: SyncClient
    let items: Dataset
    private var reading: Task<Void, any Error>?
    private var rows: QueryRows<BenchItem>?
    /// The time of the first rows since the last change was begun.
    private var arrival: ContinuousClock.Instant?
    private var waiter: CheckedContinuation<Void, Never>?
    private var changes = 0
    private var foreignOp = 0
    /// The times from a change until its rows have arrived, in milliseconds.
    private(set) var own: [Double] = []
    private(set) var foreign: [Double] = []

    /// Loads the items, and starts the query.
    ///
    /// - Parameters:
    ///   - count: the number of items.
    ///   - folder: the folder of the files.
    init(_ count: Int, in folder: String) async throws {
        (self.count, file) = (count, folder + "/device-\(count).sqlite")
        let snapshot = folder + "/items-\(count).snapshot"
        try DeviceSnapshot.write(count, to: snapshot) { BenchItem.numbered(Int($0)).insertion(seq: $0) }
        node = try ScriptedNode(snapshot: snapshot, head: Seq(count) - 1, publishing: .appended { _, _ in })
        client = try SyncClient(nodes: ["scripted"], store: .file(file), transport: node)
        items = try await client.open(DeviceSnapshot.stream.description, models: [BenchItem.self])
        try await items.stream.waitUntil(seq: Seq(count) - 1)
        reading = Task { [weak self, values = BenchItem.open(in: items).values] in
            defer { self?.resume() }
            for try await rows in values { self?.received(rows) }
        }
        try await arrived()
        // The query then prepares for changes.
        try await Usage.rests(getpid())
    }

    func close() async {
        reading?.cancel()
        await client.close()
    }

    /// Forgets the measured times.
    func forgetTimes() { (own, foreign) = ([], []) }

    /// Measures own and foreign changes of rows, in turn.
    func measure(_ count: Int) async throws {
        for number in 0..<count {
            guard let rows, rows.count == BenchItem.window else { throw BenchmarkError("the query lacks rows") }
            let id = rows[number * 37 % BenchItem.window].id
            changes += 1
            arrival = nil
            let begin = ContinuousClock.now
            if number.isMultiple(of: 2) {
                try await items.update(id) { [changes] in ($0.place, $0.owner) = (-changes, "bob") }
                own.append((try await arrived() - begin) / .milliseconds(1))
            } else {
                change(id)
                foreign.append((try await arrived() - begin) / .milliseconds(1))
            }
            try await confirmed()
        }
    }

    /// Lets the node send an event of another device.
    private func change(_ id: BenchItem.ID) {
        let (op, place) = (foreignOp, -changes)
        foreignOp += 1
        node.append(to: DeviceSnapshot.stream) { seq in
            LoggedEvent(.update, "item", id.text, #""fields":{"owner":"bob","place":\#(place)}"#, seq: seq, op: op).json
        }
    }

    /// Waits until an own change is confirmed, and the rows show that.
    private func confirmed() async throws {
        while items.stream.status.pendingCount > 0 || rows?.pending.isEmpty != true {
            try await Task.sleep(for: .milliseconds(1))
        }
    }

    private func received(_ rows: QueryRows<BenchItem>) {
        self.rows = rows
        arrival = arrival ?? .now
        resume()
    }

    private func resume() {
        waiter?.resume()
        waiter = nil
    }

    /// Waits for the first rows since the change, and returns the time at which they arrived.
    @discardableResult private func arrived() async throws -> ContinuousClock.Instant {
        if arrival == nil { await withCheckedContinuation { waiter = $0 } }
        guard let arrival else { throw BenchmarkError("the query has ended") }
        return arrival
    }
}
