/// The members of one JSON object from outside: a frame or the body of a request. The initializer validates all of it;
/// each value is converted when it is requested. Members that are never requested are ignored.
public struct JSONObject {
    private let shape: ErrorCode
    private let levels: Int
    private struct Member {
        var name: JSONText
        var value: Bytes
        /// The elements, if the value is an array.
        var elements: [Bytes]?
    }

    private var members: [Member] = []

    /// Reads an object.
    ///
    /// - Parameters:
    ///   - bytes: the JSON text of the object, without anything else. It must stay valid while the object is in use.
    ///   - levels: the maximum number of levels of objects and arrays, including the object itself.
    ///   - shape: the code of the error for valid JSON of another shape than expected.
    /// - Throws: `bad_json` for invalid JSON; `shape` for any value except an object.
    public init(_ bytes: Bytes, levels: Int, shape: ErrorCode) throws(ReelError) {
        self.shape = shape
        self.levels = levels
        var members: [Member] = []
        var reader = JSONReader(bytes, levels: levels, shape: shape)
        let kind = try reader.kind()
        guard kind == .object else {
            try reader.skip()
            try reader.end()
            throw reader.mismatch("found another value (\(kind.rawValue)), expected an object")
        }
        try reader.object { (reader, name) throws(ReelError) in
            let isArray = try reader.kind() == .array
            let start = reader.position
            var elements: [Bytes] = []
            if isArray {
                try reader.array { (reader) throws(ReelError) in elements.append(try reader.raw()) }
            } else {
                try reader.skip()
            }
            let value = Bytes(rebasing: bytes[start..<reader.position])
            members.append(Member(name: name, value: value, elements: isArray ? elements : nil))
        }
        try reader.end()
        self.members = members
    }

    /// Returns the JSON of a member's value, unchanged; nil if it is absent.
    public func raw(_ name: StaticString) -> Bytes? { member(name)?.value }

    private func member(_ name: StaticString) -> Member? {
        members.first { $0.name.isPlain ? name ~= $0.name.raw : $0.name.string == name.description }
    }

    /// Returns a member's text; nil if it is absent.
    public func string(_ name: StaticString) throws(ReelError) -> String? {
        try read(name) { (reader) throws(ReelError) in try reader.string() }
    }

    /// Returns a member's integer; nil if it is absent.
    ///
    /// - Parameters:
    ///   - name: the name of the member.
    ///   - lowest: the lowest integer that is accepted.
    ///   - highest: the highest integer that is accepted.
    /// - Throws: the code for wrong shapes if the value is not such an integer.
    public func integer(
        _ name: StaticString,
        from lowest: Int64 = 0,
        to highest: Int64 = largestInteger
    ) throws(ReelError) -> Int64? {
        try read(name) { (reader) throws(ReelError) in try reader.integer(from: lowest, to: highest) }
    }

    /// Returns a member's epoch; nil if it is absent.
    public func epoch(_ name: StaticString = "epoch") throws(ReelError) -> Epoch? {
        guard let text = try string(name) else { return nil }
        guard let epoch = Epoch(text) else {
            throw mismatch("found \(text.debugDescription) for \"\(name)\", expected 16 lower-case hex digits")
        }
        return epoch
    }

    /// Returns a member's site; nil if it is absent.
    public func site(_ name: StaticString = "site") throws(ReelError) -> Site? {
        guard let text = try string(name) else { return nil }
        guard let site = Site(text) else {
            throw mismatch("found \(text.debugDescription) for \"\(name)\", expected a UUID in lower case")
        }
        return site
    }

    /// Returns the required member `stream`. Throws `bad_stream` for a name that is not valid.
    public func stream() throws(ReelError) -> StreamName {
        let text = try required("stream", string("stream"))
        guard let stream = StreamName(text) else {
            throw ReelError(.badStream, "found the stream \(text.debugDescription), expected \(StreamName.rule)")
        }
        return stream
    }

    /// Returns the JSON of each element of a member's array, unchanged; nil if the member is absent.
    public func elements(_ name: StaticString) throws(ReelError) -> [Bytes]? {
        guard let member = member(name) else { return nil }
        if let elements = member.elements { return elements }
        // The value is not an array; this call throws the error that says so.
        return try array(name) { (reader) throws(ReelError) in try reader.raw() }
    }

    /// Returns the elements of a member's array, each read by `element`; nil if the member is absent.
    public func array<Element>(
        _ name: StaticString,
        _ element: (inout JSONReader) throws(ReelError) -> Element
    ) throws(ReelError) -> [Element]? {
        try read(name) { (reader) throws(ReelError) in
            var elements: [Element] = []
            try reader.array { (reader) throws(ReelError) in elements.append(try element(&reader)) }
            return elements
        }
    }

    /// Returns a member that is an object; nil if it is absent.
    public func object(_ name: StaticString) throws(ReelError) -> JSONObject? {
        guard let value = raw(name) else { return nil }
        return try JSONObject(value, levels: levels, shape: shape)
    }

    /// Returns a member's value as read by `value`; nil if it is absent.
    public func read<Value>(
        _ name: StaticString,
        _ value: (inout JSONReader) throws(ReelError) -> Value
    ) throws(ReelError) -> Value? {
        guard let bytes = raw(name) else { return nil }
        var reader = JSONReader(bytes, levels: levels, shape: shape)
        do throws(ReelError) {
            return try value(&reader)
        } catch {
            throw ReelError(error.code, "in \"\(name)\": \(error.message)")
        }
    }

    /// Returns the value of a required member; throws if it is nil.
    public func required<Value>(_ name: StaticString, _ value: Value?) throws(ReelError) -> Value {
        guard let value else { throw mismatch("found no member \"\(name)\"") }
        return value
    }

    /// Returns an error with the code for wrong shapes.
    public func mismatch(_ message: String) -> ReelError {
        ReelError(shape, message)
    }
}
