import ReelCore
import ScriptedNodes
import Synchronization

@testable import ReelClient

/// A log of one partition with its folded streams. Nodes serve their states from it.
final class FoldedLog: Sendable {
    /// A record, and the stream that it belongs to.
    struct Record: Sendable {
        var stream: StreamName
        var value: [UInt8]
    }

    private struct State {
        var fold = PartitionFold(partition: 0, of: 1, epoch: FoldedLog.epoch)
        /// The number of events of the author in each stream.
        var authored: [StreamName: Op] = [:]
    }

    static let epoch = Epoch(1)
    private let state: Mutex<State>

    init() { state = Mutex(State()) }

    private init(_ given: State) { state = Mutex(given) }

    /// Returns another log with the same records.
    func copy() -> FoldedLog { FoldedLog(state.withLock { $0 }) }

    /// The last seq.
    var head: Seq { state.withLock { $0.fold.next - 1 } }

    /// Appends a record.
    func append(_ record: Record) {
        state.withLock { state in
            record.stream.key.withUnsafeBytes { key in
                record.value.withUnsafeBytes { _ = state.fold.read(key: key, value: $0, seq: state.fold.next) }
            }
        }
    }

    /// Appends an event of another device, and returns its record.
    @discardableResult
    func author(_ event: SyncEvent, in stream: StreamName) -> Record {
        let value = state.withLock { state in
            defer { state.authored[stream, default: 0] += 1 }
            let author = EventID(site: Site(high: 1, low: 1), op: state.authored[stream, default: 0])
            return event.encoded(base: state.fold.next - 1, author: author)
        }
        append(Record(stream: stream, value: value))
        return Record(stream: stream, value: value)
    }

    /// Returns the state of a stream at the head.
    func fold(_ stream: StreamName) -> Fold {
        state.withLock { state in
            var fold = state.fold.streams[stream] ?? Fold(stream: stream, partition: 0, epoch: Self.epoch)
            fold.advance(to: state.fold.next - 1)
            return fold
        }
    }

    /// Returns the snapshot of a stream, or its delta after a seq.
    func snapshot(of stream: StreamName, after: Seq = .none) throws -> [UInt8] {
        var (fold, bytes) = (fold(stream), [UInt8]())
        var writer = try fold.snapshot(after: after)
        writer.writeAll(to: &bytes)
        return bytes
    }

    /// Returns a node that has no records yet after `head`. It appends what clients publish, here too.
    ///
    /// - Parameter head: the seq of the states that the node begins with; nil: the head.
    func node(head: Seq? = nil) throws -> ScriptedNode {
        let publishing = ScriptedNode.Publishing.appended { [self] in append(Record(stream: $0, value: $1)) }
        return try ScriptedNode(epoch: Self.epoch, head: head ?? self.head, publishing: publishing) {
            [self] target, _ in
            (try? answer(target)).map { ScriptedNode.pieces(of: $0) }
        }
    }

    private func answer(_ target: String) throws -> [UInt8]? {
        let parts = target.split { "/?&".contains($0) }
        guard parts.count > 3, let stream = StreamName(String(parts[2])) else { return nil }
        var query: [Substring: String] = [:]
        for part in parts[4...] {
            let sides = part.split(separator: "=", maxSplits: 1)
            query[sides[0]] = sides.count > 1 ? String(sides[1]) : ""
        }
        guard parts[3] == "delta", let after = query["after"].flatMap({ Seq($0) }) else {
            return try snapshot(of: stream)
        }
        guard let model = query["model"], let id = query["id"], let cut = SnapshotCut(model: model, id: id) else {
            return try snapshot(of: stream, after: after)
        }
        var (fold, bytes) = (fold(stream), [UInt8]())
        var writer = try fold.rest(after: after, beyond: cut)
        writer.writeAll(to: &bytes)
        return bytes
    }
}
