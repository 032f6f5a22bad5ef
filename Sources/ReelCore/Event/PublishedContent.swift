/// The content that a client gave to an event, without the members that may change when the client sends it again.
/// Those are `at`, `base` and `by`, which are the first members in canonical order.
package struct PublishedContent {
    private var base: Bytes?
    /// The text of `by` with its quotes; nil if the event has none.
    package private(set) var by: Bytes?
    private var rest: Bytes

    /// Splits the canonical value of a record.
    package init(_ value: Bytes) {
        rest = Bytes(rebasing: value.dropFirst())
        _ = take(#""at":"#)
        base = take(#""base":"#)
        by = take(#""by":"#)
    }

    /// The last seq that the author of the event had folded.
    package var baseSeq: Seq? { base.flatMap { Seq(String(decoding: $0, as: UTF8.self)) } }

    /// True if two events with the same (site, op) cannot both be intended by their author. Events of two authors do
    /// not contradict each other: the fold refuses the foreign one.
    package func contradicts(_ other: PublishedContent) -> Bool {
        guard !rest.equals(other.rest) else { return false }
        guard let by, let theirs = other.by else { return by == nil && other.by == nil }
        return by.equals(theirs)
    }

    package static func contradict(_ a: [UInt8], _ b: [UInt8]) -> Bool {
        a.withUnsafeBytes { a in b.withUnsafeBytes { PublishedContent(a).contradicts(PublishedContent($0)) } }
    }

    /// Returns the number or text after `name`, if the rest begins with `name`. The rest then begins after the
    /// following comma.
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
