/// What a client said in an event, apart from what may change when it sends it again: `at`, `base` and `by` are the
/// first names in canonical order, so they stand in front.
package struct PublishedContent {
    private var base: Bytes?
    /// The text of `by`, with its quotes; nil: the event has none.
    package private(set) var by: Bytes?
    private var rest: Bytes

    /// Takes a record's canonical value apart.
    package init(_ value: Bytes) {
        rest = Bytes(rebasing: value.dropFirst())
        _ = take(#""at":"#)
        base = take(#""base":"#)
        by = take(#""by":"#)
    }

    /// The last seq that the event's author had folded.
    package var baseSeq: Seq? { base.flatMap { Seq(String(decoding: $0, as: UTF8.self)) } }

    /// Whether two events of one (site, op) cannot both be what its author means. Those of two authors can stand side
    /// by side: the fold refuses the one that is foreign.
    package func contradicts(_ other: PublishedContent) -> Bool {
        guard !rest.equals(other.rest) else { return false }
        guard let by, let theirs = other.by else { return by == nil && other.by == nil }
        return by.equals(theirs)
    }

    package static func contradict(_ a: [UInt8], _ b: [UInt8]) -> Bool {
        a.withUnsafeBytes { a in b.withUnsafeBytes { PublishedContent(a).contradicts(PublishedContent($0)) } }
    }

    /// The number or text behind this name, if the rest begins with it; the rest then begins behind its comma.
    private mutating func take(_ name: StaticString) -> Bytes? {
        let length = name.utf8CodeUnitCount
        guard rest.count > length, name ~= Bytes(rebasing: rest[..<length]) else { return nil }
        var end = length
        if rest[end] == UInt8(ascii: "\"") {
            end += 1
            while end < rest.count, rest[end] != UInt8(ascii: "\"") {
                end += rest[end] == UInt8(ascii: "\\") ? 2 : 1
            }
        }
        while end < rest.count, rest[end] != UInt8(ascii: ",") { end += 1 }
        guard end < rest.count else { return nil }
        let value = Bytes(rebasing: rest[length..<end])
        rest = Bytes(rebasing: rest[(end + 1)...])
        return value
    }
}
