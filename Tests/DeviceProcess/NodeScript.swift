import Foundation
import ReelCore
import ScriptedNodes

/// The answers of the process's node, which lie in a folder: `STREAM.snapshot` and `STREAM.delta`, and the records
/// after the states in `events`, one a line.
struct NodeScript: Sendable {
    let folder: String
    /// The last seq of the log before the work.
    let head: Seq

    /// The records of the stream `s` that the node gets during the work.
    var events: [[UInt8]] { (read("events") ?? []).split(separator: UInt8(ascii: "\n")).map(Array.init) }

    /// Returns a node that prints each record which a client publishes. The printed records are its log.
    ///
    /// - Parameter served: called on the loop before each piece of a state, and after the last one.
    func node(_ served: @escaping @Sendable () -> Void = {}) throws -> ScriptedNode {
        try ScriptedNode(
            epoch: Epoch(1),
            head: head,
            publishing: .appended { stream, value in say("log \(stream) \(String(decoding: value, as: UTF8.self))") }
        ) { target, _ in
            guard let state = try? state(target) else { return nil }
            let pieces = ScriptedNode.pieces(of: state)
            return {
                served()
                return pieces()
            }
        }
    }

    private func state(_ target: String) throws -> [UInt8]? {
        let parts = target.split { "/?".contains($0) }
        guard parts.count > 3 else { return nil }
        // The rest of a snapshot that was cut ends with the object's name: `…&model=MODEL&id=ID`.
        let query = parts.last?.split { "&=".contains($0) } ?? []
        guard query.count == 8, let cut = SnapshotCut(model: String(query[5]), id: String(query[7])) else {
            return read("\(parts[2]).\(parts[3])")
        }
        var reader = SnapshotReader()
        for line in (read("\(parts[2]).snapshot") ?? []).split(separator: UInt8(ascii: "\n")) {
            try line.withUnsafeBytes { try reader.read(line: $0) }
        }
        var (fold, bytes) = (try reader.finish(), [UInt8]())
        var rest = try fold.rest(after: head, beyond: cut)
        rest.writeAll(to: &bytes)
        return bytes
    }

    private func read(_ name: String) -> [UInt8]? {
        FileManager.default.contents(atPath: folder + "/" + name).map { Array($0) }
    }
}
