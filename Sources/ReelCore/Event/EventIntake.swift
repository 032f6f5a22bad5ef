/// Checks events as clients send them, converts them to canonical form, and stamps them. The result is the record's
/// value, which never changes afterwards.
public struct EventIntake {
    /// The values that the gateway adds to an event.
    public struct Stamp: Sendable {
        /// The subject of the token, 1 to 128 bytes without control characters; nil without a token.
        public var by: String?
        /// The gateway's clock in milliseconds since 1970.
        public var atMs: Int64
        /// The last seq of the partition that the gateway has read. It is the base of an event that has none.
        public var base: Seq

        /// Creates a stamp.
        public init(by: String?, atMs: Int64, base: Seq) {
            self.by = by
            self.atMs = atMs
            self.base = base
        }
    }

    /// The maximum size of an event in bytes, in canonical form with stamps.
    public let limit: Int
    /// The last accepted event. Its slices refer to the bytes that were appended for it.
    public private(set) var event = ParsedEvent()
    /// True if the last accepted event has a `base` from its client or a guard on a seq. Such numbers are valid only in
    /// one epoch. A guard of −1 only requires that the field is absent.
    public private(set) var namesSeqs = false
    private var canonical: [UInt8] = []

    /// Creates an intake for events of at most `limit` bytes, which is capped at the maximum of a record.
    public init(limit: Int) {
        self.limit = min(limit, Limits.value)
    }

    /// Appends the record's value for an event that a client sent.
    ///
    /// - Parameters:
    ///   - sent: the event as the client sent it.
    ///   - stamp: the values that the gateway adds.
    ///   - output: the bytes to append to.
    /// - Throws: `bad_json`, `bad_number`, `bad_event` or `too_large`; then nothing is appended.
    public mutating func take(_ sent: Bytes, stamp: Stamp, into output: inout [UInt8]) throws(ReelError) {
        if takeCanonical(sent, stamp, into: &output) { return }
        canonical.removeAll(keepingCapacity: true)
        try CanonicalJSON.canonicalize(sent, into: &canonical)
        let start = output.count
        let givesBase: Bool
        do throws(ReelError) {
            givesBase = try canonical.withUnsafeBufferPointer { (bytes) throws(ReelError) in
                try EventIntake.stamp(Bytes(bytes), stamp, &output)
            }
            guard output.count - start <= limit else {
                throw ReelError(
                    .tooLarge,
                    "found an event of \(output.count - start) bytes with its stamps, expected at most \(limit)"
                )
            }
            try parse(output, from: start)
        } catch {
            output.removeSubrange(start...)
            throw error
        }
        namesSeqs = givesBase || event.guards.contains { $0.seq > .none }
    }

    /// The fast path for clients that send canonical events: puts the new head before the rest, and reads the result
    /// only once. Returns false, and appends nothing, if the result is not an event. The slow path then finds the
    /// reason.
    private mutating func takeCanonical(_ sent: Bytes, _ stamp: Stamp, into output: inout [UInt8]) -> Bool {
        var reader = CanonicalReader(sent, code: .badEvent)
        reader.open()
        let start = output.count
        do throws(ReelError) {
            let base = reader.member(#""base":"#) ? try reader.integer(from: -1) : nil
            // Other errors are found when the whole is parsed. A client's `by` is checked here, because the parser
            // would accept it as the gateway's.
            guard !reader.member(#""by":"#) else { return false }
            if base == nil { try reader.expect(ASCII.openBrace) }
            guard reader.byte == (base == nil ? ASCII.quote : ASCII.comma) else { return false }
            Self.append(stamp, base: base, before: sent[reader.position...], to: &output)
            guard output.count - start <= limit else { throw ReelError(.tooLarge, "") }
            try parse(output, from: start)
            namesSeqs = base != nil || event.guards.contains { $0.seq > .none }
            return true
        } catch {
            output.removeSubrange(start...)
            return false
        }
    }

    private mutating func parse(_ output: [UInt8], from start: Int) throws(ReelError) {
        try output.withUnsafeBufferPointer { (bytes) throws(ReelError) in
            try event.parse(Bytes(UnsafeBufferPointer(rebasing: bytes[start...])))
        }
    }

    /// Stamps a canonical event. `at`, `base` and `by` are its first members, so a new head before the rest is enough.
    /// Returns true if the client has given a base.
    private static func stamp(_ bytes: Bytes, _ stamp: Stamp, _ output: inout [UInt8]) throws(ReelError) -> Bool {
        var reader = CanonicalReader(bytes, code: .badEvent)
        guard reader.byte == ASCII.openBrace else { throw ReelError(.badEvent, "found no object, expected an event") }
        reader.position += 1
        var (rest, lastKey) = (1, Slice(start: 0, count: 0))
        var base: Seq?
        var isFirst = true
        while let key = try reader.nextKey(&lastKey) {
            defer { isFirst = false }
            switch reader.bytes(key) {
            case "at", "by", "seq":
                throw ReelError(
                    .badEvent,
                    "found the member \"\(String(decoding: reader.bytes(key), as: UTF8.self))\", "
                        + "which the log and its gateways give, not a client"
                )
            case "base":
                // The new head replaces all bytes up to here.
                guard isFirst else { throw ReelError(.badEvent, "found a member before \"base\", which no event has") }
                base = try reader.integer(from: -1)
                rest = reader.position
            default: try reader.value(levels: Limits.depth - 1)
            }
        }
        append(stamp, base: base, before: bytes[rest...], to: &output)
        return base != nil
    }

    /// Appends a new head and the rest of an event. The rest begins with the next member, or with the comma before it.
    private static func append(_ stamp: Stamp, base: Seq?, before rest: Bytes.SubSequence, to output: inout [UInt8]) {
        output.append(#"{"at":"#)
        output.append(integer: stamp.atMs)
        output.append(#","base":"#)
        output.append(integer: base ?? stamp.base)
        if let by = stamp.by {
            output.append(#","by":"#)
            output.append(quoted: by)
        }
        if rest.first == ASCII.quote { output.append(ASCII.comma) }
        output.append(contentsOf: rest)
    }

    /// Returns the gateway's clock in an event of the log, in milliseconds since 1970; nil if the event has none.
    public static func clock(of event: Bytes) -> Int64? {
        var reader = CanonicalReader(event, code: .badEvent)
        var lastKey = Slice(start: 0, count: 0)
        do throws(ReelError) {
            try reader.expect(ASCII.openBrace)
            // `at` is the first member in canonical order.
            guard let key = try reader.nextKey(&lastKey), "at" ~= reader.bytes(key) else { return nil }
            return try reader.integer()
        } catch {
            return nil
        }
    }

    /// Returns the site and op that an event names, so that a rejection can refer to them; nil if it names none.
    /// Accepts any JSON, and does not check the other members.
    public static func author(of sent: Bytes) -> (site: Site, op: Op)? {
        var (site, op): (Site?, Op?) = (nil, nil)
        do throws(ReelError) {
            var reader = JSONReader(sent, levels: Limits.depth, shape: .badEvent)
            try reader.object { (reader, key) throws(ReelError) in
                switch key.raw {
                case "site": site = Site(bytes: try reader.text().raw)
                case "op": op = try reader.integer()
                default: try reader.skip()
                }
            }
            guard let site, let op else { return nil }
            return (site, op)
        } catch {
            return nil
        }
    }
}
