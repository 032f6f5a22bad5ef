import Testing

@testable import reel

/// What `reel publish` makes of events before it sends them.
@Suite struct SentEventsTests {
    private func sent(_ events: String...) throws -> String {
        let bodies = try SentEvents(events.map { Array($0.utf8)[...] }).bodies(epoch: nil)
        let text = bodies.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "\n")
        return text.replacing(/"site":"[0-9a-f-]{36}"/, with: #""site":"S""#)
    }

    private let noop = #"{"type":"noop"}"#
    private let last = #"{"last":true,"type":"noop"}"#

    @Test func aFreshSiteEndsWithItsLastEvent() throws {
        #expect(
            try sent(noop, noop) == #"{"events":[{"site":"S","op":0,"type":"noop"},"#
                + #"{"last":true,"site":"S","op":1,"type":"noop"}]}"#
        )
    }

    @Test func anEventThatSaysItselfThatItIsTheLastIsNotMadeOneBehindTheLast() throws {
        #expect(
            try sent(noop, last) == #"{"events":[{"site":"S","op":0,"type":"noop"},"#
                + #"{"site":"S","op":1,"last":true,"type":"noop"}]}"#
        )
        let complaint = #expect(throws: Complaint.self) { try sent(last, noop) }
        #expect(complaint?.code == .badData && complaint?.message.hasPrefix("event 2 stands behind one") == true)
    }

    @Test func anEventWithASiteStaysAsItIs() throws {
        let own = #"{"op":7,"site":"S","type":"noop"}"#
        #expect(try sent(own, noop, own).hasSuffix("\(own)]}"))
    }
}
