import ReelCore

extension Command {
    /// The folded state, as a node has it.
    static let get = Command(
        "get",
        "print the objects of a stream, those of a model, or one object",
        about: """
            Asks for the folded state. On a terminal a row for each object; else, and with --json, lines of
            JSON: a whole stream as its snapshot, an object as {"object","seq","fields"}, a field as [value, seq].
            """,
        operands: [Operand("STREAM"), Operand("MODEL", .optional), Operand("ID", .optional)],
        settings: [NodeArguments.url, CommonSettings.json],
        examples: [
            Example("reel get todo", "all objects"),
            Example("reel get todo task", "those of one model"),
            Example("reel get todo task 1 --json", "one object, for a program"),
        ]
    ) { options, console in
        let caller = try await NodeCaller(try NodeArguments.addresses(options))
        let path = "/v1/streams/\(try streamName(options.operands[0]))"
        let model = options.operands.dropFirst().first
        let asTable = console.isTerminal && !options[CommonSettings.json]
        if let model, let id = options.operands.dropFirst(2).first {
            let object = try await caller.get("\(path)/objects/\(model.percentEncoded)/\(id.percentEncoded)")
            if asTable {
                try print([try ObjectRow(object[...])].compactMap { $0 }, to: console)
            } else {
                try console.write(object + (object.last == UInt8(ascii: "\n") ? [] : [UInt8(ascii: "\n")]))
            }
            return .done
        }
        let snapshot = try SnapshotLines(try await caller.get("\(path)/snapshot"))
        if model == nil, !asTable {
            try console.write(snapshot.bytes)
            return .done
        }
        var rows: [ObjectRow] = []
        for line in snapshot.lines.dropFirst().dropLast() {
            guard let row = try ObjectRow(line), model == nil || row.model == model else { continue }
            if asTable { rows.append(row) } else { try console.write(line + [UInt8(ascii: "\n")]) }
        }
        try print(rows, to: console)
        return .done
    }

    private static func print(_ rows: [ObjectRow], to console: Console) throws {
        let nameWidth = rows.map(\.name.count).max() ?? 0
        let seqWidth = rows.map { String($0.seq).count }.max() ?? 0
        for row in rows {
            let name = row.name + String(repeating: " ", count: nameWidth - row.name.count)
            let seq = String(repeating: " ", count: seqWidth - String(row.seq).count) + String(row.seq)
            try console.print("\(name)  \(seq)  \(row.fields.joined(separator: " "))")
        }
    }
}

/// A living object of a snapshot, or of an answer, as a row for people.
private struct ObjectRow {
    private(set) var model = ""
    private(set) var id = ""
    private(set) var seq = Seq.none
    /// `name=value`, the value as JSON.
    private(set) var fields: [String] = []

    var name: String { "\(model)/\(id)" }

    /// Nil for a line that is of no living object. Ends with 4 for what is no such line.
    init?(_ line: ArraySlice<UInt8>) throws(Complaint) {
        var isObject = false
        do throws(ReelError) {
            try SnapshotLines.members(line) { (reader, key) throws(ReelError) in
                switch key.raw {
                case "object":
                    var names: [String] = []
                    try reader.array { (reader) throws(ReelError) in names.append(try reader.string()) }
                    guard names.count == 2 else { throw reader.mismatch("found no [model, id]") }
                    (model, id, isObject) = (names[0], names[1], true)
                case "seq": seq = try reader.integer()
                case "fields":
                    try reader.object { (reader, name) throws(ReelError) in
                        var value: String?
                        try reader.array { (reader) throws(ReelError) in
                            let raw = try reader.raw()
                            if value == nil { value = String(decoding: raw, as: UTF8.self) }
                        }
                        fields.append("\(name.string)=\(value ?? "")")
                    }
                default: try reader.skip()
                }
            }
        } catch {
            throw Complaint(.badData, "a line of a node's answer cannot be read: \(error.message)")
        }
        if !isObject { return nil }
    }
}
