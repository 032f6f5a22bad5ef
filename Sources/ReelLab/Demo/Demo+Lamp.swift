import ReelClient
import ReelCore

extension Demo {
    /// Lets two devices press one switch at once: merging keeps the data equal, but only `set` keeps the meaning.
    func lightSwitch(_ ann: DemoDevice, _ bob: DemoDevice) async throws {
        screen.chapter("The light switch: ann and bob see the lamp off, and both want it on")
        let streams = [try await ann.client.open(light), try await bob.client.open(light)]
        let made = try await streams[0].publish(.insert("lamp", id: "hall", ["presses": 0, "on": false])).acked() ?? 0
        try await settle(streams, to: made)

        async let press = streams[0].publish(
            .update("lamp", id: "hall", operations: ["presses": .increment(1)])
        ).acked()
        async let pressToo = streams[1].publish(
            .update("lamp", id: "hall", operations: ["presses": .increment(1)])
        ).acked()
        try await settle(streams, to: max(try await press ?? 0, try await pressToo ?? 0))
        let presses = try values(streams, "presses") { $0.number.map { Int($0) } }
        screen.say("toggle: both press; \(presses[0] ?? -1) presses, so the lamp is off again: equal, and not meant")
        screen.check(presses == [2, 2], "both devices count 2 presses")

        async let set = streams[0].publish(.update("lamp", id: "hall", ["on": true])).acked()
        async let setToo = streams[1].publish(.update("lamp", id: "hall", ["on": true])).acked()
        try await settle(streams, to: max(try await set ?? 0, try await setToo ?? 0))
        let on = try values(streams, "on") { $0.bool }
        screen.say("set:    both say on = true; the lamp is on")
        screen.check(on == [true, true], "both devices see the lamp on")
    }

    private func values<T>(_ streams: [SyncStream], _ field: String, _ read: (JSONValue) -> T?) throws -> [T?] {
        var values: [T?] = []
        for stream in streams { values.append(try stream.confirmed.object("lamp", id: "hall")?[field].flatMap(read)) }
        return values
    }
}
