import ReelCore
import Testing

@Suite struct PartitionRulesTests {
    static let site = "6f1c0f0e-8d3b-4a6e-9c55-0123456789ab"
    static let noop = #"{"base":-1,"op":0,"site":"\#(site)","type":"noop"}"#
    static let seed = #"{"line":{"end":-1,"op":4,"site":"\#(site)"},"type":"seed"}"#
    static let fold = #"{"fold":1,"type":"barrier"}"#
    static let open = #"{"open":true,"type":"barrier"}"#
    static let end = #"{"end":"00000000000000ff","type":"barrier"}"#

    /// Returns the kind of each record in partition 0. A record is written as `KEY VALUE`; an empty text is a hole.
    private func read(_ records: [String], of partitions: Int = 1, phase: PartitionRules.Phase = .seeds) -> [String] {
        var rules = PartitionRules(partition: 0, of: partitions, phase: phase)
        var event = ParsedEvent()
        return records.map { record in
            let parts = record.split(separator: " ", maxSplits: 1).map { Array($0.utf8) }
            guard parts.count == 2 else {
                rules.hole()
                return "hole"
            }
            let kind = parts[0].withUnsafeBytes { key in
                parts[1].withUnsafeBytes { rules.read(key: key, value: $0, into: &event) }
            }
            return switch kind {
            case .event: "event"
            case .seed: "seed"
            case .barrier: "barrier"
            case .unknownBarrier: "stop"
            case .void: "void"
            }
        }
    }

    @Test("every record is an event a barrier a seed or void") func everyRecordIsAn() {
        #expect(
            read([
                "todo \(Self.noop)", "todo nonsense", "todo {}", "~reel \(Self.fold)", "~reel {}", "~reel x",
                "~other \(Self.noop)", ". \(Self.noop)", "todo \(Self.fold)", "~reel \(Self.noop)", "",
                "todo \(Self.noop)",
            ]) == [
                "event", "void", "void", "barrier", "void", "void", "void", "void", "void", "void", "hole", "event",
            ]
        )
    }

    @Test("a record in another partition than its keys is void") func aRecordInAnother() throws {
        let key = try #require(["a", "b", "c", "d", "e"].first { StreamName($0)?.partition(of: 4) == 0 })
        let other = try #require(["a", "b", "c", "d", "e"].first { StreamName($0)?.partition(of: 4) != 0 })
        #expect(read(["\(key) \(Self.noop)", "\(other) \(Self.noop)"], of: 4) == ["event", "void"])
        #expect(read(["\(other) \(Self.seed)", "\(key) \(Self.seed)"], of: 4) == ["void", "void"])
        #expect(read(["~reel \(Self.fold)"], of: 4) == ["barrier"])
    }

    @Test(
        "seeds count only in the unbroken row at the beginning",
        arguments: [
            ["todo \(open)", "todo \(seed)"], ["~reel \(open)", "todo \(seed)"], ["todo \(noop)", "todo \(seed)"],
            ["", "todo \(seed)"], ["~reel {}", "todo \(seed)"], [#"todo {"line":{},"type":"seed"}"#, "todo \(seed)"],
        ]
    )
    func seeds(_ records: [String]) {
        #expect(read(["todo \(Self.seed)", "a \(Self.seed)"] + records).suffix(1) == ["void"])
        #expect(read(["todo \(Self.seed)", "a \(Self.seed)"] + records).prefix(2) == ["seed", "seed"])
    }

    @Test("a fold from a snapshot takes no seeds") func aFoldFromA() {
        #expect(read(["todo \(Self.seed)"], phase: .open) == ["void"])
    }

    @Test("every record after the end of the epoch is void") func voidAfterEnd() {
        #expect(
            read(["~reel \(Self.end)", "todo \(Self.noop)", "~reel \(Self.fold)", #"~reel {"type":"barrier"}"#])
                == ["barrier", "void", "void", "void"]
        )
    }

    @Test(
        "a reader stops at an unknown barrier in any notation",
        arguments: [
            #"{"fold":2,"type":"barrier"}"#, #"{"fold":0,"type":"barrier"}"#, #"{"fold":"1","type":"barrier"}"#,
            #"{"open":false,"type":"barrier"}"#, #"{"end":"FF","type":"barrier"}"#, #"{"type":"barrier"}"#,
            #"{"fold":1,"open":true,"type":"barrier"}"#, #"{"type":"barrier","fold":1}"#,
            #" { "type" : "\u0062arrier" , "x" : [ { } ] } "#,
        ]
    )
    func unknownBarriers(_ value: String) {
        #expect(read(["~reel \(value)"]) == ["stop"])
    }

    @Test(
        "a value that is not an object of type barrier is no barrier",
        arguments: [
            #"[{"type":"barrier"}]"#, #"{"type":"barriers"}"#, #"{"type":"barrier"} x"#, #"{"type":["barrier"]}"#,
        ]
    )
    func noBarriers(_ value: String) {
        #expect(read(["~reel \(value)", "todo \(Self.seed)"]) == ["void", "void"])
    }

    @Test("a barrier is written as it is read") func aBarrierIsWritten() {
        for barrier in [Barrier.fold(1), .end(Epoch(255)), .open] {
            #expect(barrier.value.withUnsafeBytes { Barrier.read($0) } == .known(barrier))
        }
    }

    @Test("seeds have the lines of a snapshot") func seedsHaveTheLines() throws {
        func seed(_ line: String) throws -> ParsedSeed {
            try Array(#"{"line":\#(line),"type":"seed"}"#.utf8).withUnsafeBytes { try ParsedSeed($0) }
        }
        let object = try seed(#"{"fields":{"a":[1,"\#(Self.site)"],"b":[[2],"\#(Self.site)"]},"object":["m","i"]}"#)
        #expect(object.fields.count == 2 && object.fields.allSatisfy { $0.site.description == Self.site })
        guard case .deleted = try seed(#"{"deleted":["m","i"]}"#).line,
            case .site(_, let op, let by, let ended) = try seed(
                #"{"by":"ann","end":7,"op":4,"site":"\#(Self.site)"}"#
            ).line
        else {
            Issue.record("other lines")
            return
        }
        #expect(op == 4 && by != nil && ended)
        for bad in [
            "{}", "[]", #"{"deleted":["m"]}"#, #"{"deleted":["m","i"],"seq":1}"#, #"{"fields":{},"object":["m",""]}"#,
            #"{"end":-2,"op":4,"site":"\#(Self.site)"}"#, #"{"op":4,"site":"\#(Self.site)"}"#,
            #"{"fields":{"a":[null,"\#(Self.site)"]},"object":["m","i"]}"#,
            #"{"fields":{"a":[1,0]},"object":["m","i"]}"#, #"{"object":["m","i"]}"#,
        ] {
            #expect(throws: ReelError.self, "\(bad)") { try seed(bad) }
        }
    }
}
