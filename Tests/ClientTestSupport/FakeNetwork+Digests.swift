import ReelCore

@testable import ReelClient

extension FakeNetwork {
    /// The answer to `POST /v1/digests`.
    func digests(_ question: [UInt8]) -> (Int, [UInt8]) {
        guard hasDigests else { return (404, Array(#"{"code":"not_found"}"#.utf8)) }
        guard let asked = question.withUnsafeBytes({ JSONValue(parsing: $0) })?.object,
            let streams = asked["streams"]?.array, (1...1_000).contains(streams.count)
        else { return (400, []) }
        guard asked["epoch"]?.string == "\(epoch)" else { return (409, Array(#"{"code":"epoch_changed"}"#.utf8)) }
        let last = min(head, folds?.to ?? head)
        let entries = streams.compactMap { entry -> String? in
            guard let name = entry.object?["stream"]?.string, let stream = StreamName(name),
                let seq = entry.object?["seq"]?.number.map({ Seq($0) })
            else { return nil }
            if forbidden.contains(stream) { return Self.refusal(stream, "forbidden") }
            if seq > last { return Self.refusal(stream, "node_behind") }
            var fold = fold(stream, upTo: last)
            if seq >= 0, seq < fold.horizon { return Self.refusal(stream, "truncated") }
            return Self.digest(stream, seq: fold.seq, consumed: fold.consumed, digest: fold.digest())
        }
        return (200, Array(#"{"epoch":"\#(epoch)","streams":[\#(entries.joined(separator: ","))]}"#.utf8))
    }

    private static func refusal(_ stream: StreamName, _ code: String) -> String {
        #"{"stream":"\#(stream)","error":{"code":"\#(code)","detail":"it is so"}}"#
    }

    static func digest(_ stream: StreamName, seq: Seq, consumed: Int64, digest: UInt64) -> String {
        #"{"stream":"\#(stream)","partition":0,"seq":\#(seq),"consumed":\#(consumed),"digest":"\#(Hex64.text(digest))"}"#
    }
}
