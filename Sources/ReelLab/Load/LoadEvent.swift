import ReelCore

/// The events that a load run publishes. Each contains the time at which it was due, so that a receiver can compute its
/// delay. An event of a publisher also increments a counter in its site's object, so that a doubled event shows in the
/// state. The events of editors write to one text.
enum LoadEvent {
    /// The kind of events that a client publishes.
    enum Kind: Equatable {
        /// Fields of an object of its own.
        case count
        /// Words in a text that it shares with other clients.
        case text
    }

    /// Returns the event of this op, as JSON.
    static func json(_ kind: Kind, site: Site, entry: PublishQueue.Entry, fill: [UInt8]) -> [UInt8] {
        var json: [UInt8] = []
        json.reserveCapacity(fill.count + 224)
        json.append(#"{"fields":{"due":"#)
        json.append(integer: entry.dueNs / 1_000)
        if kind == .count {
            json.append(#","fill":""#)
            json.append(contentsOf: fill)
            json.append(#"""#)
        }
        json.append(#"},"id":"#)
        if kind == .count { json.append(quoted: site) } else { json.append(#""page""#) }
        json.append(#","model":"load","op":"#)
        json.append(integer: entry.op)
        if entry.op > 0 { append(kind, entry.op, &json) }
        json.append(#","site":"#)
        json.append(quoted: site)
        json.append(entry.op == 0 ? #","type":"insert"}"# : #","type":"update"}"#)
        return json
    }

    /// Appends the operation. Words are inserted at the start of the text, and every second event removes as many
    /// there, so that the text stays short.
    private static func append(_ kind: Kind, _ op: Op, _ json: inout [UInt8]) {
        switch kind {
        case .count: json.append(#","ops":{"count":{"inc":1}}"#)
        case .text where op.isMultiple(of: 2): json.append(#","ops":{"text":{"splice":[[0,6,""]]}}"#)
        case .text: json.append(#","ops":{"text":{"splice":[[0,0,"words "]]}}"#)
        }
    }

    /// Returns the time at which the event was due, in nanoseconds of the monotonic clock of the machine that published
    /// it. Nil if the event is not from a load run.
    static func due(_ event: ParsedEvent, _ value: Bytes) -> Int64? {
        guard event.parts.count == 1, let field = event.fields.first, "due" ~= value[field.name] else { return nil }
        return Int64(String(decoding: value[field.value], as: UTF8.self)).flatMap { due in
            let (ns, overflows) = due.multipliedReportingOverflow(by: 1_000)
            return overflows ? nil : ns
        }
    }

    /// Returns `count` letters.
    static func fill(_ count: Int) -> [UInt8] {
        (0..<max(0, count)).map { UInt8(ascii: "a") + UInt8($0 % 26) }
    }
}
