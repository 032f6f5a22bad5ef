import ReelCore

/// A record of the log as a line of JSON, `{"partition":3,"seq":14,"key":"todo","value":"{…}","epoch":"9f…"}`, with the
/// value as a string.
struct LogLine: Equatable {
    /// The epoch; nil if the line does not name one.
    var epoch: Epoch?
    var partition: Int
    var seq: Seq
    var key: [UInt8]
    var value: [UInt8]

    /// The bytes that the value of every seed ends with, and of no other valid record.
    static let seedEnd = Array(#","type":"seed"}"#.utf8)

    /// True if the record is a seed: a part of the state that an epoch begins with.
    var isSeed: Bool { value.suffix(Self.seedEnd.count).elementsEqual(Self.seedEnd) }
}

extension LogLine {
    /// Appends the line of a record, with a line feed, to `output`. Only a void record can have a key or value that is
    /// not UTF-8; it is written with replacement characters.
    static func write(
        partition: Int,
        seq: Seq,
        key: Bytes,
        value: Bytes,
        epoch: Epoch,
        to output: inout [UInt8]
    ) {
        output.appendObject { object in
            object.member("partition", partition)
            object.member("seq", seq)
            object.member("key", String(decoding: key, as: UTF8.self))
            object.member("value", String(decoding: value, as: UTF8.self))
            object.member("epoch", epoch.description)
        }
        output.append(UInt8(ascii: "\n"))
    }

    /// Appends the line of a seq without a record to `output`.
    static func writeEmpty(partition: Int, seq: Seq, epoch: Epoch, to output: inout [UInt8]) {
        output.appendObject { object in
            object.member("partition", partition)
            object.member("seq", seq)
            object.member("empty", true)
            object.member("epoch", epoch.description)
        }
        output.append(UInt8(ascii: "\n"))
    }

    /// Parses the lines of a file. The members of a line can have any order. Unknown members, empty lines, and lines of
    /// seqs without a record are skipped.
    ///
    /// - Throws: a `CommandError` with exit code 4 that names the number of the first bad line.
    static func read(_ bytes: [UInt8]) throws(CommandError) -> [LogLine] {
        var lines: [LogLine] = []
        for (index, line) in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated()
        where line.contains(where: { $0 > 0x20 }) {
            do throws(ReelError) {
                let read = try line.withUnsafeBufferPointer { (line) throws(ReelError) in try LogLine(Bytes(line)) }
                if let read { lines.append(read) }
            } catch {
                throw CommandError(.badData, "line \(index + 1): \(error.message)")
            }
        }
        return lines
    }

    /// Parses a line; nil for the line of a seq without a record.
    private init?(_ line: Bytes) throws(ReelError) {
        var (partition, seq): (Int64?, Seq?)
        var isEmpty = false
        var (key, value): ([UInt8]?, [UInt8]?)
        var epoch: Epoch?
        var reader = JSONReader(line, levels: Limits.depth, shape: .badEvent)
        try reader.object { (reader, name) throws(ReelError) in
            switch name.raw {
            case "partition": partition = try reader.integer(to: Int64(LogArguments.partitionsMax) - 1)
            case "seq": seq = try reader.integer()
            case "key": key = try reader.text().bytes
            case "value": value = try reader.text().bytes
            case "epoch": epoch = Epoch(try reader.string())
            case "empty": isEmpty = try reader.boolean()
            default: try reader.skip()
            }
        }
        try reader.end()
        if isEmpty { return nil }
        guard let partition, let seq, let key, let value else {
            throw ReelError(.badEvent, "a member is missing, expected are partition, seq, key and value")
        }
        self.init(epoch: epoch, partition: Int(partition), seq: seq, key: key, value: value)
    }
}

extension JSONText {
    /// The decoded bytes.
    fileprivate var bytes: [UInt8] {
        var bytes: [UInt8] = []
        decode(into: &bytes)
        return bytes
    }
}
