import Foundation
import ReelCore
import ScriptedNodes

extension ScriptedNode {
    /// Creates a node whose snapshots lie in a file.
    ///
    /// - Parameters:
    ///   - snapshot: the path of the snapshot, which serves a stream of any name. The delta beside it has the last
    ///     event of the log.
    ///   - head: the last seq of the log.
    ///   - publishing: the treatment of events that a device publishes.
    convenience init(snapshot: String, head: Seq, publishing: Publishing = .unanswered) throws {
        try self.init(epoch: DeviceSnapshot.epoch, head: head, publishing: publishing) { target, head in
            let parts = target.split(separator: "/")
            let path = target.contains("/delta?after=\(head - 1)&") ? DeviceSnapshot.delta(of: snapshot) : snapshot
            guard parts.count == 4, parts[3] == "snapshot" || path != snapshot,
                let file = FileHandle(forReadingAtPath: path)
            else { return nil }
            return Self.pieces(of: file, named: String(parts[2]))
        }
    }

    /// Returns the pieces of a file, whose first piece gets the name of a stream.
    private static func pieces(of file: FileHandle, named name: String) -> Pieces {
        var isFirst = true
        return {
            var piece = [UInt8](unsafeUninitializedCapacity: Self.pieceBytes) { buffer, count in
                count = max(0, read(file.fileDescriptor, buffer.baseAddress, buffer.count))
            }
            if isFirst { rename(&piece, name) }
            isFirst = false
            return piece.isEmpty ? nil : piece
        }
    }

    /// Replaces the name of the stream in the first line.
    private static func rename(_ piece: inout [UInt8], _ name: String) {
        guard let end = piece.firstIndex(of: UInt8(ascii: "\n")) else { return }
        let line = String(decoding: piece[..<end], as: UTF8.self)
        let renamed = line.replacingOccurrences(of: #""\#(DeviceSnapshot.stream)""#, with: #""\#(name)""#)
        piece.replaceSubrange(..<end, with: Array(renamed.utf8))
    }
}
