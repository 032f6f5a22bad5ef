import ReelCore

/// What a client said in an event, apart from what its gateway stamped: two records of one (site, op) are the same
/// event exactly if this is equal. `at`, `base` and `by` are the first names in canonical order, so they stand in
/// front.
struct PublishedContent {
    private var base: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)
    private var by: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)
    private var rest: UnsafeRawBufferPointer

    /// Takes a record's canonical value apart.
    init(_ value: UnsafeRawBufferPointer) {
        rest = UnsafeRawBufferPointer(rebasing: value.dropFirst())
        _ = take(#""at":"#)
        base = take(#""base":"#) ?? base
        by = take(#""by":"#) ?? by
    }

    /// Whether both are one event; the bases count only if the client itself gave one.
    func isSame(as other: PublishedContent, givenBase: Bool) -> Bool {
        rest.equals(other.rest) && by.equals(other.by) && (!givenBase || base.equals(other.base))
    }

    /// The number or text behind this name, if the rest begins with it; the rest then begins behind its comma.
    private mutating func take(_ name: StaticString) -> UnsafeRawBufferPointer? {
        let length = name.utf8CodeUnitCount
        guard rest.count > length, name ~= UnsafeRawBufferPointer(rebasing: rest[..<length]) else { return nil }
        var end = length
        if rest[end] == UInt8(ascii: "\"") {
            end += 1
            while end < rest.count, rest[end] != UInt8(ascii: "\"") {
                end += rest[end] == UInt8(ascii: "\\") ? 2 : 1
            }
        }
        while end < rest.count, rest[end] != UInt8(ascii: ",") { end += 1 }
        guard end < rest.count else { return nil }
        let value = UnsafeRawBufferPointer(rebasing: rest[length..<end])
        rest = UnsafeRawBufferPointer(rebasing: rest[(end + 1)...])
        return value
    }
}
