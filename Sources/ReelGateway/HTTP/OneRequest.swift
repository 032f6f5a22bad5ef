import ReelCore
import ReelNode

/// The events of one request that name no site. The gateway makes a site for them, which ends with the last of them.
struct OneRequest {
    let site: Site
    /// The events with the site and their ops.
    let events: [[UInt8]]

    /// Returns nil if the events name a site or an op themselves. Throws if only some of them do, or if the request
    /// also has a key.
    init?(_ sent: [[UInt8]], site: @autoclosure () -> Site, hasKey: Bool) throws(Problem) {
        var looks: [Look] = []
        looks.reserveCapacity(sent.count)
        for (index, event) in sent.enumerated() {
            do throws(ReelError) {
                looks.append(try Look(event))
            } catch {
                var error = error
                error.index = index
                throw Problem(error)
            }
        }
        let named = looks.firstIndex { $0.namesAuthor }
        if let named, hasKey {
            var problem = Problem(
                .badRequest,
                "found Idempotency-Key and an event with a site or an op, which do the same: expected one of both"
            )
            problem.index = named
            throw problem
        }
        if let named {
            guard let bare = looks.firstIndex(where: { !$0.namesAuthor }) else { return nil }
            var problem = Problem(
                .badEvent,
                "found neither site nor op, which event \(named) of the request has: expected both in all, or in none"
            )
            problem.index = bare
            throw problem
        }
        if let end = looks.firstIndex(where: \.isLast), end < looks.count - 1 {
            var problem = Problem(.badEvent, "found an event behind one with \"last\", which ends their site")
            problem.index = end + 1
            throw problem
        }
        let site = site()
        self.site = site
        events = sent.indices.map { index in
            let isLast = index == sent.count - 1 && !looks[index].isLast
            return Self.event(sent[index], site, Op(index), isLast: isLast, isEmpty: looks[index].isEmpty)
        }
    }

    /// The members come after the event's own members, so that the positions in errors refer to the bytes that the
    /// client has sent.
    private static func event(_ sent: [UInt8], _ site: Site, _ op: Op, isLast: Bool, isEmpty: Bool) -> [UInt8] {
        var event = Array(sent.dropLast())
        event.reserveCapacity(sent.count + 80)
        if !isEmpty { event.append(",") }
        event.append(#""site":"#)
        event.append(quoted: site)
        event.append(#","op":"#)
        event.append(integer: op)
        if isLast { event.append(#","last":true"#) }
        event.append("}")
        return event
    }

    /// The members of an event that matter for the choice of its site.
    private struct Look {
        var namesAuthor = false
        var isLast = false
        var isEmpty = true

        /// Throws if the event is not a JSON object.
        init(_ event: [UInt8]) throws(ReelError) {
            try event.withUnsafeBufferPointer { (bytes) throws(ReelError) in
                var reader = JSONReader(Bytes(bytes), levels: Limits.depth + 1, shape: .badEvent)
                try reader.object { (reader, key) throws(ReelError) in
                    isEmpty = false
                    switch key.string {
                    case "site", "op": namesAuthor = true
                    case "last": isLast = true
                    default: break
                    }
                    try reader.skip()
                }
            }
        }
    }
}
