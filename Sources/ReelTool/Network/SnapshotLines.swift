import ReelCore

/// A snapshot or delta from a node: its lines, and the values of the first and the last line.
struct SnapshotLines {
    let bytes: [UInt8]
    let lines: [ArraySlice<UInt8>]
    private(set) var epoch = ""
    private(set) var seq = Seq.none
    private(set) var digest = ""

    /// Parses the body of an answer.
    ///
    /// - Throws: a `CommandError` with exit code 4 if it is not valid or not complete.
    init(_ bytes: [UInt8]) throws(CommandError) {
        self.bytes = bytes
        lines = bytes.split(separator: UInt8(ascii: "\n"))
        guard let first = lines.first, let last = lines.last, lines.count >= 2 else {
            throw CommandError(.badData, "found a snapshot of \(lines.count) lines; expected are at least two")
        }
        var count: Int64?
        do throws(ReelError) {
            try JSONReader.members(of: first) { (reader, key) throws(ReelError) in
                switch key.raw {
                case "epoch": epoch = try reader.string()
                case "seq": seq = try reader.integer(from: -1)
                default: try reader.skip()
                }
            }
            try JSONReader.members(of: last) { (reader, key) throws(ReelError) in
                switch key.raw {
                case "count": count = try reader.integer()
                case "digest": digest = try reader.string()
                default: try reader.skip()
                }
            }
        } catch {
            throw CommandError(.badData, "a snapshot cannot be read: \(error.message)")
        }
        guard let count, count == lines.count - 2 else {
            throw CommandError(.badData, "found a snapshot of \(lines.count - 2) lines; expected are \(count ?? -1)")
        }
    }
}
