/// The one form that a JSON value has in the log: RFC 8785. So values are compared, hashed and copied as bytes.
public enum CanonicalJSON {
    /// Throws `bad_json` unless the bytes are the canonical form of a JSON value of at most so many levels of objects
    /// and arrays. Allocates nothing for common values.
    public static func check(_ bytes: Bytes, levels: Int = Limits.depth) throws(ReelError) {
        var reader = CanonicalReader(bytes, code: .badJSON)
        try reader.value(levels: levels)
        try reader.end()
    }
}
