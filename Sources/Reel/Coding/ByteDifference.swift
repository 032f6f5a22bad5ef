internal import ReelClient

/// The difference of two sequences of bytes as splices. In the stream, one Unicode scalar stands for each byte.
enum ByteDifference {
    /// Returns the splices that have the effect of an edit.
    ///
    /// - Parameters:
    ///   - old: the bytes before the edit.
    ///   - new: the bytes after the edit.
    ///   - present: the bytes on which the splices are performed. If they differ from `old`, the edit is moved over the
    ///     difference: both edits stay.
    static func splices(from old: [UInt8], to new: [UInt8], in present: [UInt8]) -> [TextSplice] {
        guard let edit = replacement(from: old, to: new) else { return [] }
        let inserted = text(of: new[edit.start..<edit.start + edit.inserted])
        guard let other = replacement(from: old, to: present) else {
            return [TextSplice(at: edit.start, removing: edit.removed, inserting: inserted)]
        }
        return edit.rebased(over: other).filter { $0.removed > 0 || $0.inserts && edit.inserted > 0 }.map {
            TextSplice(at: $0.start, removing: $0.removed, inserting: $0.inserts ? inserted : "")
        }
    }

    /// Returns the text that stands for bytes.
    static func text(of bytes: some Sequence<UInt8>) -> String {
        var text = String.UnicodeScalarView()
        for byte in bytes { text.append(Unicode.Scalar(byte)) }
        return String(text)
    }

    /// Returns the bytes that a text stands for.
    static func bytes(of json: JSONValue) throws(FieldValueError) -> [UInt8] {
        guard let text = json.string else { throw FieldValueError(found: json.excerpt, expected: "bytes as a text") }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count)
        for scalar in text.unicodeScalars {
            guard let byte = UInt8(exactly: scalar.value) else {
                let found = "U+\(String(scalar.value, radix: 16, uppercase: true))"
                throw FieldValueError(found: found, expected: "the scalars U+0000 to U+00FF")
            }
            bytes.append(byte)
        }
        return bytes
    }

    private static func replacement(from old: [UInt8], to new: [UInt8]) -> Replacement? {
        old.withUnsafeBufferPointer { old in new.withUnsafeBufferPointer { Replacement.between(old, $0) } }
    }
}
