import ReelCore
import ReelNode
import Testing

@testable import ReelGateway

/// The decisions of a reader's position.
@Suite struct StreamCursorTests {
    private var cursor = StreamCursor(StreamName("todo")!, in: 3, after: 9)

    private func piece(_ from: Seq, _ to: Seq, events: Int = 0) -> EventRange {
        var piece = EventRange(from: from, to: to)
        for number in 0..<events {
            Array(#"{"op":\#(number)}"#.utf8).withUnsafeBytes { piece.append(seq: from, value: $0) }
        }
        return piece
    }

    @Test("it needs what follows the client's seq, up to the last seq that the reader wants") func needs() throws {
        guard case .need(let query) = cursor.step(to: 20, bytes: 100, events: 7) else {
            Issue.record("found that nothing is needed")
            return
        }
        #expect(query.stream.description == "todo" && query.partition == 3 && query.filter == nil)
        #expect(query.from == 10 && query.to == 20 && query.bytes == 100 && query.events == 7)
        guard case .caughtUp = cursor.step(to: 9, bytes: 100) else {
            Issue.record("found a need beyond the last seq")
            return
        }
    }

    @Test("a piece proves what earlier pieces without events have covered") mutating func proves() {
        #expect(cursor.take(piece(10, 14)) == .keep)
        #expect(cursor.proven == 9 && cursor.next == 15)
        var sent = piece(15, 20, events: 1)
        guard case .send(let range) = cursor.take(sent) else {
            Issue.record("found that an event is not sent")
            return
        }
        sent.from = 10
        #expect(range == sent)
        #expect(cursor.proven == 20 && cursor.next == 21)
    }

    @Test("many seqs without events are proven from time to time") mutating func provesGaps() {
        let last = 9 + StreamCursor.provenEvery
        #expect(cursor.take(piece(10, last - 1)) == .keep)
        #expect(cursor.take(piece(last, last)) == .send(piece(10, last)))
        #expect(cursor.take(piece(last + 1, last + 1), provenEvery: 1) == .send(piece(last + 1, last + 1)))
    }

    @Test("a piece that does not continue the range is refused, and changes nothing") mutating func refuses() {
        for wrong in [piece(9, 12), piece(11, 12, events: 1), piece(10, 9)] {
            guard case .refuse(let error) = cursor.take(wrong) else {
                Issue.record("found that \(wrong.from)…\(wrong.to) is taken after 9")
                continue
            }
            #expect(error.code == .internal)
        }
        #expect(cursor.proven == 9 && cursor.next == 10)
    }

    @Test("what the tail has sent is not needed again") mutating func provenElsewhere() {
        #expect(cursor.take(piece(10, 14)) == .keep)
        cursor.prove(to: 12)
        #expect(cursor.proven == 12 && cursor.next == 15)
        cursor.prove(to: 30)
        #expect(cursor.proven == 30 && cursor.next == 31)
        cursor.prove(to: 20)
        #expect(cursor.proven == 30 && cursor.next == 31)
    }
}
