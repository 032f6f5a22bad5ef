/// A record of a log as a line of JSON, from `reel dump` or from `kcat -J`.
struct LogLine {
    let place: Range<Int>
    let partition: Int
    let seq: Int64
    let key: LineReader.RawText?
    let value: LineReader.RawText?
    /// The epoch, if the line names it: in `epoch`, or in the topic `reel.EPOCH`.
    let epoch: UInt64?
    /// True if the log has no record at this seq.
    let isEmpty: Bool
    /// True for a line of kcat, which skips seqs without a record and does not name them.
    let isFromKcat: Bool

    init(_ bytes: UnsafeRawBufferPointer, _ place: Range<Int>) throws(Fault) {
        var reader = LineReader(bytes, place)
        var (partition, seq): (Int64?, Int64?)
        var (key, value): (LineReader.RawText?, LineReader.RawText?)
        var epoch: UInt64?
        var (isEmpty, isFromKcat, hasValue) = (false, false, false)
        try reader.object { (reader, name) throws(Fault) in
            switch name {
            case "partition": partition = try reader.integer()
            case "seq": seq = try reader.integer()
            case "offset":
                seq = try reader.integer()
                isFromKcat = true
            case "key": key = try reader.optionalText()
            case "value", "payload":
                value = try reader.optionalText()
                hasValue = true
            case "empty":
                let place = try reader.skip()
                isEmpty = "true" ~= UnsafeRawBufferPointer(rebasing: bytes[place])
            case "epoch": epoch = try reader.hex64()
            case "topic":
                let topic = UnsafeRawBufferPointer(rebasing: bytes[try reader.text().place])
                if topic.count > 5 { epoch = LineReader.hex64(topic.dropFirst(5)) }
            default: try reader.skip()
            }
        }
        try reader.finish()
        guard let partition, let seq, (0...Int64(Int32.max)).contains(partition), seq >= 0 else {
            throw Fault("no record of a log: partition or seq is missing")
        }
        guard hasValue != isEmpty else { throw Fault("no record of a log: it has no value, or is empty and has one") }
        self.place = place
        self.partition = Int(partition)
        self.seq = seq
        self.key = key
        self.value = value
        self.epoch = epoch
        self.isEmpty = isEmpty
        self.isFromKcat = isFromKcat
    }
}

extension LineReader {
    /// Reads a text or null.
    fileprivate mutating func optionalText() throws(Fault) -> RawText? {
        if take(UInt8(ascii: "n")) {
            for byte in "ull".utf8 where !take(byte) { throw Fault("no value at byte \(position)") }
            return nil
        }
        return try text()
    }
}
