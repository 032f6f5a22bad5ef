/// The only form of a JSON value in the log (RFC 8785). Values can therefore be compared, hashed and copied as bytes.
public enum CanonicalJSON {
    /// Throws `bad_json` unless the bytes are the canonical form of a JSON value with at most `levels` levels of
    /// objects and arrays. Does not allocate for common values.
    public static func check(_ bytes: Bytes, levels: Int = Limits.depth) throws(ReelError) {
        var reader = CanonicalReader(bytes, code: .badJSON)
        try reader.value(levels: levels)
        try reader.end()
    }

    /// Appends the canonical form of a JSON value.
    ///
    /// - Parameters:
    ///   - bytes: the JSON text of the value.
    ///   - levels: the maximum number of levels of objects and arrays.
    ///   - output: the bytes to append to. After an error they may end with a part of the form.
    /// - Throws: `bad_json` if the bytes are not valid JSON; `bad_number` if no double represents a number. Such a
    ///   number is too large, or is an integer literal that would become another number and is not the text of a
    ///   double.
    public static func canonicalize(
        _ bytes: Bytes,
        levels: Int = Limits.depth,
        into output: inout [UInt8]
    ) throws(ReelError) {
        var reader = JSONReader(bytes, levels: levels, shape: .badJSON)
        try reader.canonicalize(into: &output)
        try reader.end()
    }
}

extension JSONReader {
    /// Reads a value and appends its canonical form.
    mutating func canonicalize(into output: inout [UInt8]) throws(ReelError) {
        switch try kind() {
        case .object: try canonicalizeObject(into: &output)
        case .array:
            output.append(ASCII.openBracket)
            var isFirst = true
            try array { (reader) throws(ReelError) in
                if !isFirst { output.append(ASCII.comma) }
                isFirst = false
                try reader.canonicalize(into: &output)
            }
            output.append(ASCII.closeBracket)
        case .string: output.append(canonical: try text())
        case .number:
            let start = position
            try CanonicalNumber.append(canonical: try number(), at: start, to: &output)
        case .boolean: output.append(try boolean() ? "true" : "false")
        case .null:
            try null()
            output.append("null")
        }
    }

    /// A member in the output: the range of its key between the quotes, and the range of the whole member.
    private struct Member {
        var key: Range<Int>
        var whole: Range<Int>
    }

    private mutating func canonicalizeObject(into output: inout [UInt8]) throws(ReelError) {
        output.append(ASCII.openBrace)
        let first = output.count
        var members: [Member] = []
        var isSorted = true
        try object { (reader, key) throws(ReelError) in
            if !members.isEmpty { output.append(ASCII.comma) }
            let start = output.count
            output.append(canonical: key)
            let keyRange = start + 1..<output.count - 1
            if isSorted, let last = members.last {
                isSorted = output.memberOrder(last.key, keyRange) < 0
            }
            output.append(ASCII.colon)
            try reader.canonicalize(into: &output)
            members.append(Member(key: keyRange, whole: start..<output.count))
        }
        if !isSorted {
            members.sort { output.memberOrder($0.key, $1.key) < 0 }
            let unsorted = Array(output[first...])
            output.removeSubrange(first...)
            for member in members {
                if output.count > first { output.append(ASCII.comma) }
                output.append(contentsOf: unsorted[member.whole.lowerBound - first..<member.whole.upperBound - first])
            }
        }
        output.append(ASCII.closeBrace)
    }
}

extension [UInt8] {
    /// Appends the canonical form of a text, with its quotes.
    fileprivate mutating func append(canonical text: JSONText) {
        if text.isPlain {
            append(ASCII.quote)
            append(contentsOf: text.raw)
            append(ASCII.quote)
        } else {
            var decoded: [UInt8] = []
            text.decode(into: &decoded)
            decoded.withUnsafeBytes { append(quoted: $0) }
        }
    }

    /// Returns the order of two canonical keys, given by their ranges in this array.
    fileprivate func memberOrder(_ a: Range<Int>, _ b: Range<Int>) -> Int {
        withUnsafeBytes { bytes in
            JSONText(Bytes(rebasing: bytes[a])).memberOrder(JSONText(Bytes(rebasing: bytes[b])))
        }
    }
}
