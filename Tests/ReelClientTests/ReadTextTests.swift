import TestSupport
import Testing

@testable import ReelClient
@testable import ReelCore

/// A splice depends on the device's own texts that its author had read. A seq cannot identify these texts.
@Suite struct ReadTextTests {
    @Test(
        "a splice is stale if its author did not see an own write of the text that the fold then applied",
        arguments: [false, true]
    )
    func appliedAfterAll(isConsumed: Bool) throws {
        var device = LoggedDevice(.insert("m", id: "0", ["text": "title"]))
        try device.publish(SyncEvent(.update("m", id: "0", ["text": "lost"]).guarded(["f": -1])))
        let sent = device.send()
        device.write(.update("m", id: "0", ["f": 1]))
        let read = try #require(device.stream.visible("m", "0"))
        #expect(read["text"] == "title", "the own event is expected to be rejected")
        device.write(.update("m", id: "0", ["f": nil]))
        if isConsumed { device.land(sent[0]) }
        #expect(device.stream.visible("m", "0")?["text"] == "lost")
        let error = #expect(throws: ReelError.self) { try device.publish(LoggedDevice.edit(2, "X"), read: read) }
        #expect(error?.code == .stale)
    }

    @Test("a splice is stale if the text's own event was refused at hand-over after the author had read it")
    func lostAtHandOver() throws {
        let device = LoggedDevice(.insert("m", id: "0", ["text": "old", "f": 1]))
        let pad = JSONValue.string(String(repeating: "p", count: 2_000))
        try device.publish(.update("m", id: "0", ["f": nil, "pad": pad]))
        try device.publish(SyncEvent(.update("m", id: "0", ["text": "hello"]).guarded(["f": -1])))
        let read = try #require(device.stream.visible("m", "0"))
        #expect(read["text"] == "hello")
        #expect(device.send(.init(events: 10, bytes: 5_000, event: 1_000)).count == 2, "the first one is too large")
        #expect(device.stream.visible("m", "0")?["text"] == "old")
        let error = #expect(throws: ReelError.self) { try device.publish(LoggedDevice.edit(1, "X"), read: read) }
        #expect(error?.code == .stale)
        let again = try #require(device.stream.visible("m", "0"))
        try device.publish(LoggedDevice.edit(1, "X"), read: again)
    }

    @Test("a client refuses a splice on text that was read in an earlier run")
    func formerRun() throws {
        let first = LoggedDevice(.insert("m", id: "0", ["text": "title"]))
        let read = try #require(first.stream.visible("m", "0"))
        let second = LoggedDevice(.insert("m", id: "0", ["text": "title"]))
        let error = #expect(throws: ReelError.self) { try second.publish(LoggedDevice.edit(1, "X"), read: read) }
        #expect(error?.code == .stale)
    }

    @Test("a device does not merge an update into an event that will be rejected")
    func mergedIntoALoser() throws {
        let fields = (0..<Limits.fields - 1).reduce(into: FieldMap<JSONValue>()) { $0["a\($1)"] = 0 }
        var device = LoggedDevice(.insert("m", id: "0", fields))
        try device.publish(.update("m", id: "0", ["z": 1]))
        device.write(.update("m", id: "0", ["y": 1]))
        try device.publish(.update("m", id: "0", ["a0": 5]))
        #expect(device.stream.visible("m", "0")?["a0"] == 5)
        #expect(device.stream.outbox.entries.count == 2)
    }

    @Test("a device hides an object that it has held and that was deleted, even if an own insert of it waits")
    func goneObject() throws {
        var device = LoggedDevice(.insert("m", id: "0", ["a": 1]))
        try device.publish(.insert("m", id: "0", ["a": 2]))
        device.write(.delete("m", id: "0"))
        device.log.passHorizon()
        device.read()
        #expect(device.stream.visible("m", "0") == nil)
        let error = #expect(throws: ReelError.self) { try device.publish(.update("m", id: "0", ["b": 1])) }
        #expect(error?.code == .noObject)
        #expect(device.send().isEmpty && RevivalTests.codes(&device.stream.outbox) == [.deleted])
    }

    @Test("a batch of another object stays unchanged when a splice before it is placed")
    func unrelatedBatch() throws {
        var device = LoggedDevice(.insert("m", id: "0", ["text": "title", "n": 0]))
        device.write(.insert("m", id: "other", ["text": "x"]))
        let title = try device.publish(SyncEvent(.update("m", id: "0", ["text": "lost"]).guarded(["n": 0])))
        let sent = device.send()
        device.write(.update("m", id: "0", ["n": 1]))
        let splice = try device.publish(LoggedDevice.edit(5, "a"))
        #expect(device.stream.outbox.waiting == [title: [splice]])
        let edit = SyncChange.update(
            "m",
            id: "other",
            operations: ["text": .splice([TextSplice(at: 1, removing: 0, inserting: "y")])]
        )
        try device.publish(.batch([.update("m", id: "other", ["n": 1]), edit]))
        // The second splice depends on the first one in the same text. The device cannot express this batch in another
        // way, so it sends the batch unchanged.
        try device.publish(.batch([edit, edit]))
        device.land(sent[0])
        device.stream.placeReleased()
        #expect(device.stream.outbox.entries.allSatisfy { !$0.event.isFiller && $0.waits == nil })
        for value in device.send() { #expect(device.log.take(value) == .applied) }
    }
}

/// A device, and a log that other devices write to.
struct LoggedDevice {
    let stream = StreamState(StreamName("s")!, start: .beginning, row: 0, outbox: Outbox(seed: 1))
    var log = RevivalTests.Log()

    /// Makes a device that has read an event of another device.
    init(_ event: SyncEvent) {
        stream.sync.isComplete = true
        write(event)
    }

    static func edit(_ offset: Int64, _ text: String) -> SyncEvent {
        .update("m", id: "0", operations: ["text": .splice([TextSplice(at: offset, removing: 0, inserting: text)])])
    }

    /// Reads the log to its end.
    func read() {
        stream.view = View(log.fold, partitions: 1)
        stream.replacement = .whole
        _ = stream.look()
    }

    /// Appends an event of another device, and reads it.
    mutating func write(_ event: SyncEvent) {
        log.write(event)
        read()
    }

    @discardableResult
    func publish(_ event: SyncEvent, read object: SyncObject? = nil) throws -> Int64 {
        try stream.add(event, base: object?.readAt.seq ?? stream.seq, read: object?.readAt.withdrawals)
    }

    func send(_ window: Outbox.Window = OutboxTests.wide) -> [[UInt8]] {
        let parcel = stream.outbox.nextBatch(
            window,
            base: log.fold.seq,
            horizon: log.fold.horizon,
            confirmed: log.fold,
            nowMs: .max / 2
        )
        return parcel?.events ?? []
    }

    /// Appends an event that was sent, and reads it.
    mutating func land(_ value: [UInt8]) {
        let outcome = log.take(value)
        let (author, seq) = (value.withUnsafeBytes { EventIntake.author(of: $0) }, log.fold.seq)
        guard let author else { return }
        stream.outbox.folded(
            .init(site: author.site, op: author.op),
            seq: seq,
            outcome,
            content: value,
            base: seq,
            nowMs: 0
        )
        read()
    }
}
