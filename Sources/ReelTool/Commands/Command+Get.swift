import ReelCore
import ReelNet
import ReelNode

extension Command {
    /// `reel get`: the folded state of a stream.
    static let get = Command(
        "get",
        "print the objects of a stream, those of a model, or one object",
        about: """
            Asks a node for the folded state. On a terminal it prints a row for each object: model and id, seq, fields.
            Into a pipe or a file, and with --json, it prints lines of JSON: for a stream its snapshot, with sites and
            tombstones; for a model or one object {"object","seq","fields"}, with each field as [value, seq]. The exit
            code is 1 if no event was ever published to the stream.
            """,
        operands: [Operand("STREAM"), Operand("MODEL", .optional), Operand("ID", .optional)],
        settings: NodeArguments.all + [CommonSettings.json],
        examples: [
            Example("reel get todo", "all objects"),
            Example("reel get todo task", "the objects of one model"),
            Example("reel get todo task 1 --json", "one object, as JSON"),
        ]
    ) { options, console in
        let caller = try await NodeCaller(try NodeArguments.addresses(options))
        let stream = try streamName(options.operands[0])
        let path = "/v1/streams/\(stream)"
        let model = options.operands.dropFirst().first
        let asTable = console.isTerminal && !options[CommonSettings.json]
        if let model, let id = options.operands.dropFirst(2).first {
            let object: [UInt8]
            do {
                object = try await caller.get("\(path)/objects/\(model.percentEncoded)/\(id.percentEncoded)")
            } catch let refusal as Refusal where refusal.isUnpublished {
                throw CommandError(.failed, await MissingStream.text(stream, caller))
            }
            // Also checked for a pipe, whose reader must not get a line that is not an object.
            let row = try ObjectLine(object[...])
            if asTable {
                try print([row].compactMap { $0 }, to: console)
            } else {
                try console.write(object + (object.last == UInt8(ascii: "\n") ? [] : [UInt8(ascii: "\n")]))
            }
            return .done
        }
        let answer = try await caller.answer("\(path)/snapshot", bytesMax: NodeCaller.stateBytesMax)
        if UnpublishedStream.isSaid(in: answer.headers) {
            throw CommandError(.failed, await MissingStream.text(stream, caller))
        }
        let snapshot = try SnapshotLines(answer.body)
        let lines = snapshot.lines.dropFirst().dropLast()
        if lines.isEmpty {
            console.note("\(stream) has no objects and no sites: no event had an effect up to seq \(snapshot.seq)")
        }
        if model == nil, !asTable {
            try console.write(snapshot.bytes)
            return .done
        }
        var (rows, count): ([ObjectLine], Int) = ([], 0)
        for line in lines {
            guard let row = try ObjectLine(line), model == nil || row.model == model else { continue }
            count += 1
            if asTable { rows.append(row) } else { try console.write(row.json) }
        }
        if count == 0, !lines.isEmpty {
            console.note("\(stream) has no object\(model.map { " of the model \($0)" } ?? "")")
        }
        try print(rows, to: console)
        return .done
    }

    private static func print(_ rows: [ObjectLine], to console: Console) throws {
        let nameWidth = rows.map(\.name.count).max() ?? 0
        let seqWidth = rows.map { String($0.seq).count }.max() ?? 0
        for row in rows {
            let name = row.name + String(repeating: " ", count: nameWidth - row.name.count)
            let seq = String(repeating: " ", count: seqWidth - String(row.seq).count) + String(row.seq)
            try console.print("\(name)  \(seq)  \(row.text)")
        }
    }
}
