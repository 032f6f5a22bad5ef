internal import ReelClient
internal import ReelCore

/// The device of one author in a replay: a client in memory, with the stream of the session.
final class ReplayDevice {
    /// A position that the author has read, and the index of the last edit that the log had then.
    private typealias Reading = (base: Int, position: ReadPosition)

    let client: SyncClient
    let stream: SyncStream
    private let transport: CutTransport
    /// The positions that later edits are made from, in the order of their use.
    private var readings: [Reading] = []
    /// The last seq that the device is known to have folded.
    private var foldedSeq = Seq.none

    /// The longest wait for a node, in milliseconds.
    private static let waitMs = 60_000

    init(
        _ nodes: [String],
        stream name: String,
        from start: StartPosition,
        transport shared: any SyncTransport,
        token: String?,
        seed: UInt64
    ) async throws {
        transport = CutTransport(shared)
        client = try SyncClient(nodes: nodes, store: .memory, transport: transport, token: token, seed: seed)
        stream = try await client.open(name, from: start)
    }

    /// Cuts the connection; false if there is none.
    func cut() async -> Bool { await transport.cut() }

    /// Waits until an own event is durable. Returns its seq, or a later one.
    func acked(_ publication: PublishHandle) async throws -> Seq {
        let seq = try await inTime("the log has the edit") { try await publication.acked() }
        // A state that shows several own events names the seq of the last one only.
        if let seq { return seq }
        return stream.status.seq
    }

    /// Waits until the device has folded this seq.
    func folded(_ seq: Seq) async throws {
        guard foldedSeq < seq else { return }
        let stream = stream
        try await inTime("the device has folded seq \(seq)") { try await stream.waitUntil(seq: seq) }
        foldedSeq = seq
    }

    /// Reads the text for later edits. The log has the edits up to the index `base` now, and no later ones.
    func read(base: Int) throws {
        guard let object = try stream.object(EditingSession.model, id: EditingSession.id) else {
            throw ReelError(.noObject, "found no \(EditingSession.model)/\(EditingSession.id), expected the text")
        }
        readings.append((base, object.readAt))
    }

    /// Returns the position that was read when the log had the edits up to this index.
    func position(base: Int) -> ReadPosition? {
        readings.removeAll { $0.base < base }
        return readings.first?.position
    }

    /// The confirmed text; nil if there is none.
    func text() throws -> String? {
        try stream.confirmed.object(EditingSession.model, id: EditingSession.id)?[EditingSession.field]?.string
    }

    /// Waits for an answer of a node.
    ///
    /// - Throws: `offline`, with the present problems of the client, if the wait takes too long.
    private func inTime<T: Sendable>(
        _ what: String,
        _ body: @escaping @Sendable () async throws -> T
    ) async throws -> T {
        try await withThrowingTaskGroup(of: T?.self) { group in
            group.addTask { try await body() }
            group.addTask {
                try await Task.sleep(for: .milliseconds(Self.waitMs))
                return nil
            }
            defer { group.cancelAll() }
            if let result = try await group.next() ?? nil { return result }
            let problems = client.status.problems.map { "\($0.code): \($0.message)" }.joined(separator: "; ")
            throw ReelError(
                .offline,
                "waited \(Self.waitMs / 1_000) s in vain until \(what): \(problems.isEmpty ? "no problem" : problems)"
            )
        }
    }
}
