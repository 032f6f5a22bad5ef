import ReelCore

/// The events that a load run publishes. Each carries when it was due, so that whoever receives it knows how late it
/// is; and each counts one up in its site's object, so that one that is applied twice shows in the state.
enum LoadEvent {
    /// The event of this op, as JSON.
    static func json(site: Site, entry: PublishQueue.Entry, fill: [UInt8]) -> [UInt8] {
        var json: [UInt8] = []
        json.reserveCapacity(fill.count + 192)
        json.append(#"{"fields":{"due":"#)
        json.append(integer: entry.dueNs / 1_000)
        json.append(#","fill":""#)
        json.append(contentsOf: fill)
        json.append(#""},"id":"#)
        json.append(quoted: site)
        json.append(#","model":"load","op":"#)
        json.append(integer: entry.op)
        if entry.op > 0 { json.append(#","ops":{"count":{"inc":1}}"#) }
        json.append(#","site":"#)
        json.append(quoted: site)
        json.append(entry.op == 0 ? #","type":"insert"}"# : #","type":"update"}"#)
        return json
    }

    /// When the event was due, in nanoseconds of the monotonic clock of the machine that published it; nil if it is
    /// none of a load run.
    static func due(_ event: ParsedEvent, _ value: Bytes) -> Int64? {
        guard event.parts.count == 1, let field = event.fields.first, "due" ~= value[field.name] else {
            return nil
        }
        return Int64(String(decoding: value[field.value], as: UTF8.self)).flatMap { due in
            let (ns, overflows) = due.multipliedReportingOverflow(by: 1_000)
            return overflows ? nil : ns
        }
    }

    /// So many letters.
    static func fill(_ count: Int) -> [UInt8] {
        (0..<max(0, count)).map { UInt8(ascii: "a") + UInt8($0 % 26) }
    }
}
