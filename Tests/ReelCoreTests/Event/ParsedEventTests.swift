import ReelCore
import Testing

@Suite struct ParsedEventTests {
    static let site = "6f1c0f0e-8d3b-4a6e-9c55-0123456789ab"

    /// Parses the text, in which SITE stands for a site, and returns the event.
    private func parse(_ text: String) throws -> ParsedEvent {
        var event = ParsedEvent()
        try Self.bytes(text).withUnsafeBytes { value throws in try event.parse(value) }
        return event
    }

    private static func bytes(_ text: String) -> [UInt8] {
        var bytes: [UInt8] = []
        for (index, piece) in text.split(separator: "SITE", omittingEmptySubsequences: false).enumerated() {
            if index > 0 { bytes += Array(site.utf8) }
            bytes += Array(piece.utf8)
        }
        return bytes
    }

    private func text(_ slice: Slice, of event: String) -> String {
        let bytes = Self.bytes(event)
        return String(decoding: bytes[Int(slice.start)..<Int(slice.start + slice.count)], as: UTF8.self)
    }

    @Test("takes an update apart") func takesAnUpdateApart() throws {
        let value = """
            {"at":1795285748235,"base":14,"by":"ann","fields":{"completed":true,"gone":null,"title":"Milk"},\
            "id":"cb55","if":{"completed":12,"new":-1},"last":true,"model":"task","op":3,"ops":{"count":{"inc":-1.5},\
            "tags":{"add":["b","a","b"],"remove":[1]},"text":{"splice":[[0,2,"ä\\n"],[9,0,""]]}},\
            "site":"SITE","type":"update"}
            """
        let event = try parse(value)
        #expect(event.at == 1_795_285_748_235)
        #expect(event.base == 14)
        #expect(event.op == 3)
        #expect(event.site.description == Self.site)
        #expect(event.by.map { text($0, of: value) } == "ann")
        #expect(event.last && !event.isBatch)
        let part = try #require(event.parts.first)
        #expect(event.parts.count == 1 && part.kind == .update)
        #expect(text(part.model, of: value) == "task")
        #expect(text(part.id, of: value) == "cb55")
        #expect(event.fields[part.fields].map { text($0.value, of: value) } == ["true", "null", "\"Milk\""])
        #expect(event.fields.map(\.removes) == [false, true, false])
        #expect(event.fields.map(\.isText) == [false, false, true])
        #expect(event.guards[part.guards].map(\.seq) == [12, -1])
        guard case .increment(-1.5) = event.operations[0].kind,
            case .change(let add, let remove) = event.operations[1].kind,
            case .splice(let triples) = event.operations[2].kind
        else {
            Issue.record("other operations: \(event.operations)")
            return
        }
        #expect(event.elements[add].map { text($0, of: value) } == ["\"a\"", "\"b\""])
        #expect(event.elements[remove].map { text($0, of: value) } == ["1"])
        #expect(event.triples[triples].map(\.scalars) == [2, 0])
        #expect(event.triples[triples].map(\.offset) == [0, 9])
    }

    @Test("takes a batch and a noop apart") func takesABatchAnd() throws {
        let batch = try parse(
            """
            {"base":-1,"events":[{"fields":{"a":1},"id":"1","model":"m","type":"insert"},\
            {"id":"2","model":"m","type":"delete"}],"op":0,"site":"SITE","type":"batch"}
            """
        )
        #expect(batch.isBatch && batch.parts.map(\.kind) == [.insert, .delete])
        #expect(batch.by == nil && batch.at == -1)
        let noop = try parse(#"{"base":-1,"op":0,"site":"SITE","type":"noop"}"#)
        #expect(noop.parts.isEmpty && !noop.isBatch)
    }

    @Test(
        "refuses what is not exactly an event",
        arguments: [
            "", "{}", "[]", "null", #"{"base":-1,"op":0,"site":"SITE"}"#,
            #"{"base":-1,"op":0,"site":"SITE","type":"noop"} "#,
            #" {"base":-1,"op":0,"site":"SITE","type":"noop"}"#,
            #"{"base":-2,"op":0,"site":"SITE","type":"noop"}"#,
            #"{"base":-1,"op":-1,"site":"SITE","type":"noop"}"#,
            #"{"base":-1,"op":01,"site":"SITE","type":"noop"}"#,
            #"{"base":-1,"op":1.0,"site":"SITE","type":"noop"}"#,
            #"{"base":-1,"op":9007199254740992,"site":"SITE","type":"noop"}"#,
            #"{"base":-1,"last":false,"op":0,"site":"SITE","type":"noop"}"#,
            #"{"base":-1,"id":"a","op":0,"site":"SITE","type":"noop"}"#,
            #"{"base":-1,"op":0,"seq":1,"site":"SITE","type":"noop"}"#,
            #"{"op":0,"base":-1,"site":"SITE","type":"noop"}"#,
            #"{"base":-1,"op":0,"op":0,"site":"SITE","type":"noop"}"#,
            #"{"base":-1{"op":0,"site":"SITE","type":"noop"}"#,
            #"{,"base":-1,"op":0,"site":"SITE","type":"noop"}"#,
            #"{"base":-1,"op":0,"site":"SITE","type":"noop","x":1}"#,
            #"{"a":1,"base":-1,"op":0,"site":"SITE","type":"noop"}"#,
            #"{"base":-1,"events":[{"id":"a","model":"m","op":1,"type":"delete"}],"op":0,"site":"SITE""#
                + #","type":"batch"}"#,
            #"{"base":-1,"events":[{"id":"a","model":"m","type":"delete"},],"op":0,"site":"SITE","type":"batch"}"#,
            #"{"base":-1,"by":"","op":0,"site":"SITE","type":"noop"}"#,
            #"{"base":-1,"events":[],"op":0,"site":"SITE","type":"batch"}"#,
            #"{"base":-1,"op":0,"site":"SITE","type":"batch"}"#,
            #"{"base":-1,"events":[{"type":"noop"}],"op":0,"site":"SITE","type":"batch"}"#,
            #"{"base":-1,"events":[{"id":"a","model":"m","type":"delete"}],"op":0,"site":"SITE","type":"noop"}"#,
            #"{"base":-1,"id":"a","model":"m","op":0,"ops":{},"site":"SITE","type":"insert"}"#,
            #"{"base":-1,"fields":{},"id":"a","model":"m","op":0,"site":"SITE","type":"delete"}"#,
            #"{"base":-1,"fields":{"a":1},"id":"a","model":"m","op":0,"ops":{"a":{"inc":1}},"site":"SITE""#
                + #","type":"update"}"#,
            #"{"base":-1,"id":"a","model":"m","op":0,"ops":{"a":{}},"site":"SITE","type":"update"}"#,
            #"{"base":-1,"id":"a","model":"m","op":0,"ops":{"a":{"inc":1e400}},"site":"SITE","type":"update"}"#,
            #"{"base":-1,"id":"a","model":"m","op":0,"ops":{"a":{"splice":[]}},"site":"SITE","type":"update"}"#,
            #"{"base":-1,"id":"a","model":"m","op":0,"ops":{"a":{"splice":[[0,0]]}},"site":"SITE","type":"update"}"#,
            #"{"base":-1,"id":"a","if":{"a":-2},"model":"m","op":0,"site":"SITE","type":"update"}"#,
            #"{"base":-1,"id":"a\n","model":"m","op":0,"site":"SITE","type":"update"}"#,
            #"{"base":-1,"id":"a","model":"","op":0,"site":"SITE","type":"update"}"#,
            #"{"base":-1,"op":0,"site":"6F1C0F0E-8D3B-4A6E-9C55-0123456789AB","type":"noop"}"#,
        ]
    )
    func refuses(_ text: String) {
        #expect(throws: ReelError.self) { try parse(text) }
    }

    @Test("an event is at most thirty two levels deep") func anEventIsAt() throws {
        func nested(_ levels: Int) -> String {
            let value = String(repeating: "[", count: levels) + String(repeating: "]", count: levels)
            return #"{"base":-1,"fields":{"a":\#(value)},"id":"a","model":"m","op":0,"site":"SITE","type":"update"}"#
        }
        _ = try parse(nested(30))
        #expect(throws: ReelError.self) { try parse(nested(31)) }
    }
}
