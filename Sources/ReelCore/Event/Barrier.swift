/// A record with the key `~reel` that changes the rules of its partition from its own seq on.
public enum Barrier: Hashable, Sendable {
    /// This version of the fold is valid from the next seq on.
    case fold(Int64)
    /// The epoch ends here. Records after the barrier are void, and readers continue in the given epoch.
    case end(Epoch)
    /// The end of the seeds of a new epoch.
    case open
    /// Ends all sites of the stream that have consumed no event above the seq `before`.
    case retire(before: Seq, stream: StreamName)

    /// The fold version that this code implements.
    public static let knownFold: Int64 = 1

    /// The result of reading a value that may be a barrier.
    public enum Reading: Hashable, Sendable {
        /// A barrier that this version knows.
        case known(Barrier)
        /// An object of type barrier that this version does not know. A reader must stop before it.
        case unknown
        /// Something else.
        case none
    }

    /// Reads the value of a record with the key `~reel`, or of a delivered event.
    public static func read(_ value: Bytes) -> Reading {
        if let barrier = exactly(value) { return .known(barrier) }
        do throws(ReelError) {
            var (isBarrier, reader) = (false, JSONReader(value, levels: Limits.seedDepth, shape: .badEvent))
            guard try reader.kind() == .object else { return .none }
            try reader.object { (reader, key) throws(ReelError) in
                if key.string == "type", try reader.kind() == .string {
                    isBarrier = try reader.string() == "barrier"
                } else {
                    try reader.skip()
                }
            }
            try reader.end()
            return isBarrier ? .unknown : .none
        } catch {
            return .none
        }
    }

    /// Returns the barrier that has exactly this value; nil if there is none.
    private static func exactly(_ value: Bytes) -> Barrier? {
        do throws(ReelError) {
            var reader = CanonicalReader(value, code: .badEvent)
            var lastKey = Slice(start: 0, count: 0)
            try reader.expect(ASCII.openBrace)
            guard let key = try reader.nextKey(&lastKey) else { return nil }
            let barrier: Barrier
            switch reader.bytes(key) {
            case "fold": barrier = .fold(try reader.integer())
            case "end":
                guard let epoch = Epoch(bytes: reader.bytes(try reader.text())) else { return nil }
                barrier = .end(epoch)
            case "open":
                try reader.literal("true")
                barrier = .open
            case "retire":
                guard let retire = try retire(&reader) else { return nil }
                barrier = retire
            default: return nil
            }
            guard let type = try reader.nextKey(&lastKey), "type" ~= reader.bytes(type),
                "barrier" ~= reader.bytes(try reader.text()), try reader.nextKey(&lastKey) == nil
            else { return nil }
            try reader.end()
            if case .fold(let version) = barrier, version != knownFold { return nil }
            return barrier
        } catch {
            return nil
        }
    }

    /// Reads the value of `retire`.
    private static func retire(_ reader: inout CanonicalReader) throws(ReelError) -> Barrier? {
        var lastKey = Slice(start: 0, count: 0)
        try reader.expect(ASCII.openBrace)
        guard let first = try reader.nextKey(&lastKey), "before" ~= reader.bytes(first) else { return nil }
        let before = try reader.integer()
        guard let second = try reader.nextKey(&lastKey), "stream" ~= reader.bytes(second),
            let stream = StreamName(bytes: reader.bytes(try reader.text())), try reader.nextKey(&lastKey) == nil
        else { return nil }
        return .retire(before: before, stream: stream)
    }

    /// The value of the barrier's record.
    public var value: [UInt8] {
        var bytes: [UInt8] = []
        switch self {
        case .fold(let version):
            bytes.append(#"{"fold":"#)
            bytes.append(integer: version)
        case .end(let epoch):
            bytes.append(#"{"end":"#)
            bytes.append(quoted: epoch.description)
        case .open:
            bytes.append(#"{"open":true"#)
        case .retire(let before, let stream):
            bytes.append(#"{"retire":{"before":"#)
            bytes.append(integer: before)
            bytes.append(#","stream":"#)
            bytes.append(quoted: stream.description)
            bytes.append("}")
        }
        bytes.append(#","type":"barrier"}"#)
        return bytes
    }
}
