internal import ReelCore

/// The keys of a device's store. A letter names the kind of a pair. Numbers have eight bytes, most significant first.
/// So the order of the keys is the order of the numbers.
///
/// | key | value |
/// | --- | --- |
/// | `c` | the client: log number, user, deployment, the next stream or generation number, the number of streams |
/// | `x` | empty; the user has signed out, and the next client that opens the store removes everything |
/// | `s` stream name | the number of the stream, the device's site in it, the next op, and the length of the queue |
/// | `p` stream | the position up to which the stream was received |
/// | `t` stream | the generations of the stream's objects, with seq, digest and head of the folded state |
/// | `l` stream | the progress of a load: the same of the state that is being received |
/// | `q` stream, number | an event of the queue |
/// | `h` stream | the history of the stream's visible changes, if an app asks for them |
/// | `h` stream, number | a row of the history: a random tag, and the objects that have changed |
/// | `e` stream, seq | an event that was received after the folded state |
/// | `o` generation, key | an object or tombstone |
/// | `a` generation, seq, key | empty; an object or tombstone that the horizon changes at this seq |
/// | `i` generation, site | a site |
enum StoreKey {
    typealias Key = [UInt8]

    static let client: Key = [UInt8(ascii: "c")]

    static let signedOut: Key = [UInt8(ascii: "x")]

    /// The beginning of the keys of all streams.
    static let streams: Key = [UInt8(ascii: "s")]
    /// The beginning of the keys of all objects and tombstones.
    static let objects: Key = [UInt8(ascii: "o")]
    /// The kinds of pairs that belong to a generation.
    static let kindsOfGenerations = "oai".utf8.map { $0 }

    static func stream(_ name: StreamName) -> Key { streams + Array(name.description.utf8) }
    static func position(_ stream: Int64) -> Key { key("p", stream) }
    static func state(_ stream: Int64) -> Key { key("t", stream) }
    static func load(_ stream: Int64) -> Key { key("l", stream) }
    static func queue(_ stream: Int64) -> Key { key("q", stream) }
    static func entry(_ stream: Int64, _ number: Int64) -> Key { key("q", stream, number) }
    static func history(_ stream: Int64) -> Key { key("h", stream) }
    static func history(_ stream: Int64, _ number: Int64) -> Key { key("h", stream, number) }
    static func events(_ stream: Int64) -> Key { key("e", stream) }
    static func event(_ stream: Int64, _ seq: Seq) -> Key { key("e", stream, seq) }
    static func object(_ generation: Int64, _ object: [UInt8]) -> Key {
        var key = objects
        key.reserveCapacity(9 + object.count)
        withUnsafeBytes(of: generation.bigEndian) { key.append(contentsOf: $0) }
        key += object
        return key
    }
    static func aging(_ generation: Int64) -> Key { key("a", generation) }
    static func aging(_ generation: Int64, _ aging: AgingKey) -> Key { key("a", generation, aging.seq) + aging.key }
    static func sites(_ generation: Int64) -> Key { key("i", generation) }
    static func site(_ generation: Int64, _ site: Site) -> Key { sites(generation) + Array(site.description.utf8) }

    /// Returns the first key after all keys that begin with `beginning`, which must not consist of bytes 255 only.
    static func end(of beginning: Key) -> Key {
        var end = beginning
        while end.last == .max { end.removeLast() }
        end[end.count - 1] += 1
        return end
    }

    /// Returns the number in the eight bytes at `offset` of a key; nil if the key is too short.
    static func number(in key: Bytes, at offset: Int) -> Int64? {
        guard key.count >= offset + 8 else { return nil }
        return Int64(bigEndian: key.loadUnaligned(fromByteOffset: offset, as: Int64.self))
    }

    private static func key(_ kind: Unicode.Scalar, _ numbers: Int64...) -> Key {
        var key = [UInt8(ascii: kind)]
        key.reserveCapacity(64)
        for number in numbers { withUnsafeBytes(of: number.bigEndian) { key.append(contentsOf: $0) } }
        return key
    }
}
