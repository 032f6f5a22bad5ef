import Testing

@testable import reel

/// What `reel publish` makes of events before it sends them.
@Suite struct SentEventsTests {
    private func sent(_ events: String...) throws -> String {
        let bodies = try SentEvents(events.map { Array($0.utf8)[...] }).bodies(epoch: nil)
        return bodies.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "\n")
    }

    private let noop = #"{"type":"noop"}"#
    private let own = #"{"op":7,"site":"S","type":"noop"}"#

    @Test("events are sent as they were given; a node makes a site for those that name none")
    func eventsStayAsTheyAre() throws {
        #expect(try sent(noop, noop) == #"{"events":[{"type":"noop"},{"type":"noop"}]}"#)
        #expect(try sent(own, own) == #"{"events":[\#(own),\#(own)]}"#)
        #expect(try sent(" ", noop) == #"{"events":[{"type":"noop"}]}"#)
    }

    @Test("only some events with a site are refused, by the place of the first that differs")
    func allOrNoneHaveSites() throws {
        for (events, says) in [
            ([noop, " ", noop, own], "event 3 has a site or an op, unlike event 1"),
            ([own, noop], "event 2 has neither site nor op, unlike event 1"),
            ([noop, #"{"op":1,"type":"noop"}"#], "event 2 has a site or an op, unlike event 1"),
        ] {
            let complaint = #expect(throws: Complaint.self) { try SentEvents(events.map { Array($0.utf8)[...] }) }
            #expect(complaint?.code == .badData && complaint?.message.hasPrefix(says) == true, "\(says)")
        }
    }

    @Test func whatIsNoJSONIsNamedByItsPlaceInTheTextThatWasGiven() {
        let text = #"{"type":"insert","model":"task","id":"1","fields":{"n":1e999}}"#
        for (events, says) in [
            ([noop, text], "event 2: found 1e999 at byte 55,"), ([text, noop], "(bad_number)"),
            (["nonsense"], "event 1: found 'n' at byte 0, expected a value (bad_json)"),
            ([" ", "[1]"], "event 1: found an array at byte 0, expected an object (bad_event)"),
        ] {
            let complaint = #expect(throws: Complaint.self) { try SentEvents(events.map { Array($0.utf8)[...] }) }
            #expect(complaint?.code == .badData && complaint?.message.contains(says) == true, "\(says)")
            #expect(complaint?.message.hasSuffix("; no event is published") == true)
        }
    }

    @Test func seqsNeedTheirEpoch() async {
        let guarded = #"{"type":"update","model":"task","id":"1","fields":{"n":1},"if":{"n":4}}"#
        let based = #"{"type":"noop","base":4}"#
        for event in [guarded, based, #"{"type":"batch","events":[\#(guarded)]}"#] {
            let run = await CommandRun(["publish", "todo", noop, event])
            #expect(run.code == .usage, "\(run)")
            #expect(run.errors.hasPrefix("reel: event 2 has a base or a guard; say with --epoch which"), "\(run)")
        }
    }
}
