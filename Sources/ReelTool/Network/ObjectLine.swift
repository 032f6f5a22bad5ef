import ReelCore

/// An object that is not deleted, from a line of a snapshot or from an answer for one object.
struct ObjectLine {
    private(set) var model = ""
    private(set) var id = ""
    private(set) var seq = Seq.none
    /// The fields in the order of the line, each with its value as JSON and the seq at which it was written.
    private(set) var fields: [(name: String, value: String, seq: Seq)] = []

    var name: String { "\(model)/\(id)" }
    /// The fields as text for people.
    var text: String { fields.map { "\($0.name)=\($0.value)" }.joined(separator: " ") }
    /// The object as a line of JSON, in the form of an answer for one object.
    var json: [UInt8] {
        var line = JSONObjectWriter()
        line.member("object", [model, id]) { $0.append(quoted: $1) }
        line.member("seq", seq)
        line.object("fields") { object in
            for field in fields {
                object.member(named: field.name) { $0 += "[\(field.value),\(field.seq)]".utf8 }
            }
        }
        return line.finishLine()
    }

    /// Parses a line; nil if it is not a line of an object.
    ///
    /// - Throws: a `CommandError` with exit code 4 if the line is not valid.
    init?(_ line: ArraySlice<UInt8>) throws(CommandError) {
        var isObject = false
        do throws(ReelError) {
            try JSONReader.members(of: line) { (reader, key) throws(ReelError) in
                switch key.raw {
                case "object":
                    var names: [String] = []
                    try reader.array { (reader) throws(ReelError) in names.append(try reader.string()) }
                    guard names.count == 2 else { throw reader.mismatch("found no [model, id]") }
                    (model, id, isObject) = (names[0], names[1], true)
                case "seq": seq = try reader.integer()
                case "fields":
                    try reader.object { (reader, name) throws(ReelError) in
                        var (value, seq): (String?, Seq?)
                        try reader.array { (reader) throws(ReelError) in
                            if value == nil {
                                value = String(decoding: try reader.raw(), as: UTF8.self)
                            } else if seq == nil {
                                seq = try reader.integer(from: -1)
                            } else {
                                try reader.skip()
                            }
                        }
                        guard let value, let seq else { throw reader.mismatch("found a field without [value, seq]") }
                        fields.append((name.string, value, seq))
                    }
                default: try reader.skip()
                }
            }
        } catch {
            throw CommandError(.badData, "a line of a node's answer cannot be read: \(error.message)")
        }
        if !isObject { return nil }
    }
}
