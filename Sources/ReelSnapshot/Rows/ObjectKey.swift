import ReelCore

/// The keys of objects and tombstones. The fold escapes model and id as canonical JSON does, while a partition's file
/// stores them decoded. So SQLite's order of the rows is the order of a snapshot's lines, that of the decoded bytes.
enum ObjectKey {
    /// Returns the stored form of a key of the fold: model, a zero byte, id. No name contains a zero byte.
    static func stored(_ key: [UInt8]) -> [UInt8] {
        guard key.contains(UInt8(ascii: "\\")) else { return key }
        var stored: [UInt8] = []
        key.withUnsafeBytes { JSONText($0).decode(into: &stored) }
        return stored
    }

    /// Returns the stored form of the key of an object.
    static func stored(model: String, id: String) -> [UInt8] { Array(model.utf8) + [0] + Array(id.utf8) }

    /// Returns the key of the fold for a stored one. A name has no control characters, so the only escapes are `\"` and
    /// `\\`.
    static func escaped(_ stored: Bytes) -> [UInt8] {
        let (quote, backslash) = (UInt8(ascii: "\""), UInt8(ascii: "\\"))
        var key: [UInt8] = []
        key.reserveCapacity(stored.count)
        for byte in stored {
            if byte == quote || byte == backslash { key.append(backslash) }
            key.append(byte)
        }
        return key
    }
}
