import ReelCore
import Testing

@testable import ReelTesting

/// The node of a world, without a network.
@Suite struct TestNodeTests {
    private static let stream = StreamName("todo")!
    private var node = TestNode()

    private mutating func send(_ body: ClientFrame.Body, on connection: Int = 1) -> [TestNode.Answer] {
        node.receive(ClientFrame(body, ref: Array("1".utf8)), on: connection, of: "ann", atMs: 7)
    }

    private mutating func publish(_ events: String...) -> [String] {
        let events = events.map { Array($0.utf8) }
        return send(.publish(.init(stream: Self.stream, epoch: TestNode.epoch, events: events))).map { answer in
            guard case .frame(let frame, _) = answer else { return "close" }
            switch frame.body {
            case .ack(let ack): return "ack \(ack.acks.map(\.seq))"
            case .nack(let nack): return "nack \(nack.op) \(nack.error.code.rawValue)"
            default: return "other"
            }
        }
    }

    private func event(_ op: Int, _ title: String = "a") -> String {
        #"{"fields":{"title":"\#(title)"},"id":"1","model":"task","op":\#(op),"#
            + #""site":"\#(Site(high: 1, low: 1))","type":"insert"}"#
    }

    private var outcomes: [Outcome] { node.records.map(\.outcome) }

    @Test("a copy is a duplicate, other content is a conflict, and a missing op is a gap") mutating func copies()
        throws
    {
        _ = send(.hello(.init(client: "test")))
        #expect(publish(event(0)) == ["ack [0]"])
        #expect(publish(event(0)) == ["ack [1]"])
        #expect(publish(event(0, "b")) == ["nack 0 conflict"])
        #expect(publish(event(2)) == ["ack [2]"])
        #expect(publish(event(1), "{}") == ["nack 1 gap"])
        #expect(publish(event(1), event(0, "b")) == ["nack 1 gap", "nack 0 conflict"])
        #expect(outcomes == [.applied, .duplicate, .gap])
    }

    @Test("later ops wait for a refused one, on the same connection") mutating func refusedOps() {
        _ = send(.hello(.init(client: "test")))
        _ = publish(event(0))
        node.refusals = [TestRefusal(number: 1, requests: .writes, code: .logUnavailable, device: nil)]
        #expect(publish(event(1)) == ["nack 1 log_unavailable"])
        node.refusals = []
        #expect(publish(event(2)) == ["nack 2 gap"])
        #expect(publish(event(1), event(2)) == ["ack [1, 2]"])
        #expect(publish(event(3)) == ["ack [3]"])
        #expect(outcomes == [.applied, .applied, .applied, .applied])
    }

    @Test("a subscription gets what it lacks, then new events, and the seqs of other streams") mutating func pushes()
        throws
    {
        _ = send(.hello(.init(client: "test")))
        _ = publish(event(0))
        let other = try #require(StreamName("other"))
        _ = send(.hello(.init(client: "test")), on: 2)
        let answers = send(
            .subscribeAll([
                .init(stream: Self.stream, position: .after(-1)), .init(stream: other, position: .after(-1)),
            ]),
            on: 2
        )
        #expect(
            texts(answers) == ["subscribed todo 0", "events todo 0…0 1", "subscribed other 0", "events other 0…0 0"]
        )
        let answer = send(.publish(.init(stream: Self.stream, events: [Array(event(1).utf8)])))
        #expect(texts(answer) == ["ack", "events todo 1…1 1", "upto 1"])
        let ahead = send(.subscribe(.init(stream: Self.stream, position: .after(9))), on: 2)
        #expect(texts(ahead) == ["error ahead_of_log"])
    }

    private func texts(_ answers: [TestNode.Answer]) -> [String] {
        answers.map { answer in
            guard case .frame(let frame, _) = answer else { return "close" }
            switch frame.body {
            case .subscribed(let subscribed): return "subscribed \(subscribed.stream) \(subscribed.head)"
            case .events(let events):
                return "events \(events.stream) \(events.from)…\(events.to) \(events.events.count)"
            case .upto(_, let seq): return "upto \(seq)"
            case .error(let failure): return "error \(failure.error.code.rawValue)"
            case .ack: return "ack"
            default: return "other"
            }
        }
    }
}
