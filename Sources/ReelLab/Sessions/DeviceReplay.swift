internal import ReelBase
public import ReelClient
public import ReelCore

/// A replay of a recorded session by devices of the SDK, one for each author, in a new stream.
///
/// The edits are published in the order of the session. Before an edit of another author is published, the log has all
/// earlier ones. So the position that a device reads at a moment of the replay contains the edits that its author knew,
/// and no others: the recorded parents become the bases of the events.
public struct DeviceReplay: Sendable {
    /// The nodes and the stream of a replay.
    public struct Target: Sendable {
        /// The addresses of the nodes. The devices begin at different ones.
        public var nodes: [String]
        /// The position where the devices begin to read: `.snapshot`, or `.all` if no snapshot node is there.
        public var start: StartPosition
        /// The token, if the nodes have keys.
        public var token: String?
        /// The path of a PEM file with the authorities of nodes at `https`; nil: those of the system.
        public var authorities: String?

        /// Creates a target.
        public init(nodes: [String], start: StartPosition, token: String? = nil, authorities: String? = nil) {
            (self.nodes, self.start, self.token, self.authorities) = (nodes, start, token, authorities)
        }
    }

    /// The result of a replay.
    public struct Result: Sendable {
        /// The duration from the first edit until all devices had folded the last one, in nanoseconds.
        public var durationNs: Int64
        /// The number of events in the stream. A device joins splices that wait in its queue into one event.
        public var events: Int64
        /// The number of connections that were cut.
        public var cuts: Int
        /// The first device whose text differs from the recorded one, and the place; nil: none.
        public var wrong: (author: Int, difference: TextDifference)?
        /// True if all devices have the same digest.
        public var hasOneDigest: Bool
    }

    /// An edit that was refused.
    public struct Refusal: Error, CustomStringConvertible {
        /// The index of the edit in the file.
        public var edit: Int
        /// The author, counted from 0.
        public var author: Int
        /// The reason.
        public var error: ReelError

        /// The refusal as a sentence, without a full stop.
        public var description: String { "edit \(edit) of author \(author) is refused: \(error.message)" }
    }

    private let session: EditingSession
    private let target: Target
    private let cuts: Int
    private let seed: UInt64

    /// The largest number of edits of one author without an ack.
    private static let unackedMax = 256

    /// Creates a replay.
    ///
    /// - Parameters:
    ///   - session: the session.
    ///   - target: the nodes.
    ///   - cuts: the number of connections to cut, each of a random device before a random edit.
    ///   - seed: the seed of all random decisions.
    public init(_ session: EditingSession, _ target: Target, cuts: Int, seed: UInt64) {
        (self.session, self.target, self.cuts, self.seed) = (session, target, cuts, seed)
    }

    /// Publishes all edits and waits until all devices have folded them.
    ///
    /// - Parameter progress: is called with the number of published edits, after each one.
    /// - Throws: `Refusal` for an edit that a device refuses. `offline` if the nodes do not answer for a minute.
    public func run(progress: (Int) -> Void = { _ in }) async throws -> Result {
        let transport = try NetTransport(authorities: target.authorities)
        let name = "replay-\(Site.random())"
        var devices: [ReplayDevice] = []
        for author in 0..<session.authors {
            let first = author % target.nodes.count
            devices.append(
                try await ReplayDevice(
                    Array(target.nodes[first...] + target.nodes[..<first]),
                    stream: name,
                    from: target.start,
                    transport: transport,
                    token: target.token,
                    seed: seed &+ UInt64(author)
                )
            )
        }
        do {
            let result = try await run(devices, progress)
            for device in devices { await device.client.close() }
            return result
        } catch {
            for device in devices { await device.client.close() }
            throw error
        }
    }

    private func run(_ devices: [ReplayDevice], _ progress: (Int) -> Void) async throws -> Result {
        var pass = ReplayPass(devices)
        var cutter = ReplayCuts(cuts, edits: session.edits.count, devices: devices.count, seed: seed)
        let readers = readers()
        let event = SyncEvent.insert(
            EditingSession.model,
            id: EditingSession.id,
            [EditingSession.field: .string(session.startText)]
        )
        try await pass.publish(event, by: 0, base: nil)
        try await pass.settle()
        for author in readers[-1] ?? [] { try await pass.read(by: author, base: -1) }
        let start = MonotonicClock.nowNs()
        for (index, edit) in session.edits.enumerated() {
            try await cutter.cut(devices, at: index)
            if pass.author != edit.author || pass.unacked >= Self.unackedMax { try await pass.settle() }
            do {
                try await pass.publish(edit, knowsAll: edit.base == index - 1)
            } catch let error as ReelError where error.code != .offline {
                throw Refusal(edit: edit.index, author: edit.author, error: error)
            }
            for author in readers[index] ?? [] { try await pass.read(by: author, base: index) }
            progress(index + 1)
        }
        try await pass.settle()
        for device in devices { try await device.folded(pass.head) }
        let durationNs = MonotonicClock.nowNs() - start
        return try await result(devices, durationNs: durationNs, cuts: cutter.done)
    }

    /// Returns the authors that read after each edit. An author that knows all edits before the own one reads when it
    /// is published. Otherwise the author reads before the first edit that is unknown to the author.
    private func readers() -> [Int: Set<Int>] {
        var readers: [Int: Set<Int>] = [:]
        for (index, edit) in session.edits.enumerated() where edit.base < index - 1 {
            readers[edit.base, default: []].insert(edit.author)
        }
        return readers
    }

    private func result(_ devices: [ReplayDevice], durationNs: Int64, cuts: Int) async throws -> Result {
        var result = Result(durationNs: durationNs, events: 0, cuts: cuts, hasOneDigest: true)
        var digests: Set<UInt64?> = []
        for (author, device) in devices.enumerated() {
            digests.insert(await device.stream.digest())
            result.events = max(result.events, await device.client.statistics.eventsReceived)
            let text = try device.text() ?? ""
            if result.wrong == nil, let difference = TextDifference(found: text, expected: session.endText) {
                result.wrong = (author, difference)
            }
        }
        result.hasOneDigest = digests.count == 1
        return result
    }
}

/// The state of a replay by devices: the edits that wait for their acks.
private struct ReplayPass {
    let devices: [ReplayDevice]
    /// The highest seq of an acked event.
    private(set) var head = Seq.none
    /// The author of the last edit.
    private(set) var author = 0
    /// The number of edits of this author since the last ack.
    private(set) var unacked = 0
    /// The last edit, until it is acked.
    private var last: PublishHandle?

    init(_ devices: [ReplayDevice]) {
        self.devices = devices
    }

    /// Publishes an edit. `knowsAll`: the author knew all edits before it.
    mutating func publish(_ edit: EditingSession.Edit, knowsAll: Bool) async throws {
        let device = devices[edit.author]
        let splice = FieldOperation.splice(
            edit.patches.map { TextSplice(at: $0.offset, removing: $0.removed, inserting: $0.text) }
        )
        let event = SyncEvent.update(
            EditingSession.model,
            id: EditingSession.id,
            operations: [EditingSession.field: splice]
        )
        if knowsAll { try await device.folded(head) }
        try await publish(event, by: edit.author, base: knowsAll ? nil : device.position(base: edit.base))
    }

    /// Publishes an event of an author.
    mutating func publish(_ event: SyncEvent, by author: Int, base: ReadPosition?) async throws {
        last = try await devices[author].stream.publish(event, base: base)
        self.author = author
        unacked += 1
    }

    /// Waits until the log has all edits.
    mutating func settle() async throws {
        guard let last else { return }
        head = max(head, try await devices[author].acked(last))
        self.last = nil
        unacked = 0
    }

    /// Lets a device read the text when the log has exactly the edits up to `base`.
    mutating func read(by reader: Int, base: Int) async throws {
        try await settle()
        try await devices[reader].folded(head)
        try devices[reader].read(base: base)
    }
}

/// The cuts of a replay: before which edits the connection of which device ends.
private struct ReplayCuts {
    /// The cuts that are due, the first one last.
    private var due: [(edit: Int, device: Int)] = []
    /// The number of connections that were cut.
    private(set) var done = 0

    init(_ count: Int, edits: Int, devices: Int, seed: UInt64) {
        guard edits > 0 else { return }
        var random = SeededGenerator(seed: seed)
        due = (0..<count).map { _ in
            (Int.random(in: 0..<edits, using: &random), Int.random(in: 0..<devices, using: &random))
        }
        due.sort { ($0.edit, $0.device) > ($1.edit, $1.device) }
    }

    /// Cuts the connections that are due before this edit. A device that is not connected is cut before a later edit.
    mutating func cut(_ devices: [ReplayDevice], at edit: Int) async throws {
        while let next = due.last, next.edit <= edit {
            guard await devices[next.device].cut() else { return }
            due.removeLast()
            done += 1
        }
    }
}
