import ReelCore
import Testing

@Suite struct FrameTests {
    static let stream = StreamName("todo")!
    static let epoch = Epoch(0x9f00_0000_0000_0001)
    static let site = Site("6f1c0f0e-8d3b-4a6e-9c55-0123456789ab")!

    private func client(_ text: String) throws -> ClientFrame {
        try Array(text.utf8).withUnsafeBytes { try ClientFrame($0) }
    }

    @Test(
        "a client's frame is read as it was written",
        arguments: [
            ClientFrame(.hello(.init(client: "test/1"))),
            ClientFrame(.hello(.init(client: "test/1", token: "a\"b")), ref: Array("1e3".utf8)),
            ClientFrame(.hello(.init(client: "test/1", takesNodes: true))),
            ClientFrame(.subscribe(.init(stream: stream, position: .now)), ref: Array(#""x""#.utf8)),
            ClientFrame(
                .subscribe(
                    .init(
                        stream: stream,
                        position: .after(17),
                        epoch: epoch,
                        models: ["a", "ä"],
                        site: site,
                        last: .init(seq: 16, hash: 3)
                    )
                )
            ),
            ClientFrame(.subscribe(.init(stream: stream, position: .now, hasOutcomes: true))),
            ClientFrame(
                .subscribeAll([
                    .init(stream: stream, position: .after(17), epoch: epoch, last: .init(seq: 16, hash: 3)),
                    .init(stream: StreamName("b")!, position: .now, models: ["a"], site: site, hasOutcomes: true),
                ]),
                ref: [49]
            ),
            ClientFrame(.unsubscribe(stream)),
            ClientFrame(.fetch(.init(stream: stream, epoch: epoch, ranges: [10...14, 30...31]))),
            ClientFrame(.fetch(.init(stream: stream, epoch: epoch, ranges: [1...2], hasOutcomes: true))),
            ClientFrame(.publish(.init(stream: stream, epoch: epoch, events: [Array(#"{"a": 1}"#.utf8), [48]]))),
        ]
    )
    func clientFramesRoundTrip(_ frame: ClientFrame) throws {
        let read = try frame.encoded().withUnsafeBytes { try ClientFrame($0) }
        #expect(read == frame)
    }

    @Test(
        "a gateway's frame is read as it was written",
        arguments: [
            ServerFrame(
                .welcome(
                    .init(
                        node: "n",
                        epoch: epoch,
                        number: 3,
                        deployment: Deployment(7),
                        partitions: 4,
                        limits: .init(frame: 1, event: 2, batch: 3, subscriptions: 4, subscribe: 6, fetch: 5),
                        pingS: 20,
                        nodes: ["https://b", "https://c"]
                    )
                )
            ),
            ServerFrame(
                .subscribed(.init(stream: stream, epoch: epoch, partition: 3, first: -1, head: -1, after: -1)),
                ref: [49]
            ),
            ServerFrame(
                .events(
                    .init(
                        stream: stream,
                        from: 5,
                        to: 9,
                        events: [
                            .init(seq: 6, value: Array(#"{"op":1}"#.utf8)),
                            .init(seq: 9, value: Array(#"{"b":[]}"#.utf8)),
                        ]
                    )
                )
            ),
            ServerFrame(.upto(partition: 2, seq: 99)), ServerFrame(.unsubscribed(stream)),
            ServerFrame(.ack(.init(stream: stream, epoch: epoch, acks: [.init(site: site, op: 3, seq: 8)]))),
            ServerFrame(
                .nack(.init(stream: stream, site: site, op: 3, error: ReelError(.gap, "found", retryMs: 0)))
            ),
            ServerFrame(.lagged(stream, seq: 4, head: 9)), ServerFrame(.goaway(afterMs: 500, nodes: ["ws://a"])),
            ServerFrame(.nodes(["https://b", "https://c"])), ServerFrame(.nodes([])),
            ServerFrame(.error(.init(ReelError(.truncated, "gone", index: 2), stream: stream, first: 12))),
        ]
    )
    func serverFramesRoundTrip(_ frame: ServerFrame) throws {
        let read = try frame.encoded().withUnsafeBytes { try ServerFrame($0) }
        #expect(read == frame)
    }

    @Test("a delivered event is the record with its seq in front") func deliversRecordWithSeq() throws {
        let value = Array(#"{"op":1,"type":"noop"}"#.utf8)
        var bytes: [UInt8] = []
        value.withUnsafeBytes { DeliveredEvent.write(seq: 12, value: $0, to: &bytes) }
        #expect(String(decoding: bytes, as: UTF8.self) == #"{"seq":12,"op":1,"type":"noop"}"#)
        #expect(try bytes.withUnsafeBytes { try DeliveredEvent($0) } == DeliveredEvent(seq: 12, value: value))
        #expect(DeliveredEvent(seq: 12, value: value).outcomeAndRecord == nil)
        for outcome in [Outcome.applied, .rejected(.guard)] {
            var bytes: [UInt8] = []
            value.withUnsafeBytes {
                DeliveredEvent.write(seq: 12, outcome: outcome.description, value: $0, to: &bytes)
            }
            let delivered = try bytes.withUnsafeBytes { try DeliveredEvent($0) }
            let found = try #require(delivered.outcomeAndRecord)
            #expect(found.outcome == outcome && found.record == value)
            // A cut value is no event with an outcome, and no trap.
            for count in 0..<delivered.value.count - value.count {
                let cut = DeliveredEvent(seq: 12, value: Array(delivered.value.prefix(count)))
                #expect(cut.outcomeAndRecord == nil)
            }
        }
    }

    @Test("unknown members are ignored and escaped names are understood") func unknownMembersAreIgnored() throws {
        let frame = try client(#" {"x":[{"y":{}}],"\u0074":"hello","client":"c"} "#)
        #expect(frame == ClientFrame(.hello(.init(client: "c"))))
    }

    @Test(
        "a bad frame is refused by its code and carries its ref back",
        arguments: [
            (#"{"t":"hello"}"#, ErrorCode.badFrame, nil), (#"{"t":"nonsense","ref":7}"#, .badFrame, "7"),
            (#"{"ref":"a","client":"c"}"#, .badFrame, "\"a\""),
            (#"{"t":"hello","t":"hello","client":""}"#, .badJSON, nil),
            (#"{"t":"hello","client":"\ud800"}"#, .badJSON, nil),
            (#"{"t":"hello","client":"\udc00\ud800"}"#, .badJSON, nil),
            (#"[]"#, .badFrame, nil), ("", .badJSON, nil), (#"{"t":"hello","client":"c"} x"#, .badJSON, nil),
            (#"{"t":"hello","client":"c","x":{"a":1,"b":2,"a":3}}"#, .badJSON, nil),
            (#"{"t":"hello","client":"c","nodes":1}"#, .badFrame, nil),
            (#"{"t":"subscribe","stream":"~x","after":-1}"#, .badStream, nil),
            (#"{"t":"subscribe","stream":"a","after":1}"#, .badFrame, nil),
            (#"{"t":"subscribe","stream":"a","after":"then"}"#, .badFrame, nil),
            (#"{"t":"subscribe","stream":"a","after":-2}"#, .badFrame, nil),
            (#"{"t":"subscribe","stream":"a","after":1.5}"#, .badFrame, nil),
            (#"{"t":"subscribe","stream":"a","after":-1,"ref":{}}"#, .badFrame, nil),
            (#"{"t":"subscribe","streams":[],"ref":1}"#, .badFrame, "1"),
            (#"{"t":"subscribe","streams":null}"#, .badFrame, nil),
            (#"{"t":"subscribe","streams":[[]]}"#, .badFrame, nil),
            (#"{"t":"subscribe","streams":[{"stream":"a","after":-1},{"stream":"a","after":-1}]}"#, .badFrame, nil),
            (#"{"t":"subscribe","streams":[{"stream":"~x","after":-1}]}"#, .badStream, nil),
            (#"{"t":"subscribe","stream":"a","after":-1,"streams":[{"stream":"b","after":-1}]}"#, .badFrame, nil),
            (#"{"t":"fetch","stream":"a","epoch":"9f00000000000001","ranges":[[2,1]]}"#, .badRange, nil),
            (#"{"t":"fetch","stream":"a","epoch":"9f00000000000001","ranges":[]}"#, .badRange, nil),
            (#"{"t":"fetch","stream":"a","epoch":"9f00000000000001","ranges":[[0,100000]]}"#, .badRange, nil),
            (#"{"t":"fetch","stream":"a","epoch":"9F00000000000001","ranges":[[0,1]]}"#, .badFrame, nil),
            (#"{"t":"publish","stream":"a","events":[],"ref":-1}"#, .badFrame, "-1"),
        ] as [(String, ErrorCode, String?)]
    )
    func badFrames(_ text: String, _ code: ErrorCode, _ ref: String?) {
        let error = #expect(throws: FrameError.self) { try client(text) }
        #expect(error?.error.code == code)
        #expect(error?.ref.map { String(decoding: $0, as: UTF8.self) } == ref)
    }

    @Test("a publish of too many events is refused before they are copied") func aPublishOfToo() throws {
        func publish(_ count: Int) -> [UInt8] {
            let events = [String](repeating: "1", count: count).joined(separator: ",")
            return Array(#"{"t":"publish","stream":"a","events":[\#(events)],"ref":7}"#.utf8)
        }
        _ = try publish(3).withUnsafeBytes { try ClientFrame($0, eventsMax: 3) }
        let error = #expect(throws: FrameError.self) {
            try publish(4).withUnsafeBytes { try ClientFrame($0, eventsMax: 3) }
        }
        #expect(error?.error == ReelError(.limit, "found 4 events, expected at most 3"))
        #expect(error?.ref == Array("7".utf8) && error?.stream == StreamName("a"))
    }

    @Test("a frame is at most thirty six levels deep") func aFrameIsAt() throws {
        func nested(_ levels: Int) -> String {
            let value = String(repeating: "[", count: levels) + String(repeating: "]", count: levels)
            return #"{"t":"hello","client":"c","x":\#(value)}"#
        }
        _ = try client(nested(35))
        let error = #expect(throws: FrameError.self) { try client(nested(36)) }
        #expect(error?.error.code == .badJSON)
        #expect(throws: FrameError.self) { try client(nested(100_000)) }
    }

    @Test("a code of another version is kept in the message") func aCodeOfAnother() throws {
        let bytes = Array(#"{"t":"error","code":"new_thing","message":"m"}"#.utf8)
        let frame = try bytes.withUnsafeBytes { try ServerFrame($0) }
        #expect(frame.body == .error(.init(ReelError(.internal, "new_thing: m"))))
    }
}
