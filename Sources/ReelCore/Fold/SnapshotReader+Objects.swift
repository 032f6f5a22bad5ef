/// Reads the lines of objects and tombstones.
extension SnapshotReader {
    mutating func readTombstone(_ reader: inout CanonicalReader, _ last: inout Slice) throws(ReelError) {
        enter(.tombstones)
        let (model, id) = try readName(&reader)
        try reader.expect("seq", &last)
        let seq = try readSeq(&reader)
        fold?.bury(model: model, id: id, at: seq)
    }

    mutating func readObject(_ reader: inout CanonicalReader, _ last: inout Slice) throws(ReelError) {
        enter(.objects)
        var fields: [FoldedField] = []
        fields.reserveCapacity(fieldNames.count)
        try reader.expect(ASCII.openBrace)
        var lastName = Slice(start: 0, count: 0)
        while let name = try reader.nextKey(&lastName) {
            try reader.checkName(name, "a field's name")
            fields.append(try readField(shared(reader.bytes(name), at: fields.count), &reader))
        }
        if fieldNames.count > fields.count { fieldNames.removeLast(fieldNames.count - fields.count) }
        try reader.expect("object", &last)
        let (model, id) = try readName(&reader)
        try reader.expect("seq", &last)
        let seq = try readSeq(&reader)
        guard !fields.contains(where: { $0.writer.seq > seq }) else {
            throw reader.error("found a field with a writer after seq \(seq) of its object")
        }
        let size = fields.reduce(1) { $0 + $1.cost }
        guard fields.count <= Limits.fields, size <= Limits.object else {
            throw ReelError(
                .tooLarge,
                "found an object of \(fields.count) fields and \(size) bytes, expected at most \(Limits.fields) and "
                    + "\(Limits.object)"
            )
        }
        fold?.set(model: model, id: id, seq: seq, fields: fields)
    }

    private mutating func enter(_ next: Step) {
        if step != next { lastKey = [] }
        step = next
    }

    private mutating func readName(_ reader: inout CanonicalReader) throws(ReelError) -> (model: Bytes, id: Bytes) {
        try reader.expect(ASCII.openBracket)
        let model = reader.bytes(try reader.name("a model"))
        try reader.expect(ASCII.comma)
        let id = reader.bytes(try reader.name("an id"))
        try reader.expect(ASCII.closeBracket)
        nextKey.removeAll(keepingCapacity: true)
        nextKey.append(contentsOf: model)
        nextKey.append(0)
        nextKey.append(contentsOf: id)
        guard lastKey.withUnsafeBytes({ last in nextKey.withUnsafeBytes { NameOrder.bytes(last, $0) } }) < 0 else {
            throw reader.error("found objects that are not in order")
        }
        swap(&lastKey, &nextKey)
        return (model, id)
    }

    /// Returns the name of a field. Shares it with the field at the same place of the last object if both are equal.
    private mutating func shared(_ name: Bytes, at index: Int) -> [UInt8] {
        if index < fieldNames.count, fieldNames[index].withUnsafeBytes({ $0.equals(name) }) { return fieldNames[index] }
        let own = Array(name)
        if index < fieldNames.count { fieldNames[index] = own } else { fieldNames.append(own) }
        return own
    }

    private mutating func readField(_ name: [UInt8], _ reader: inout CanonicalReader) throws(ReelError) -> FoldedField {
        try reader.expect(ASCII.openBracket)
        if reader.byte == UInt8(ascii: "n") { throw reader.error("found a field without a value") }
        let start = reader.position
        try reader.value(levels: Limits.seedDepth)
        let value = reader.bytes(Slice(start: start, count: reader.position - start))
        try reader.expect(ASCII.comma)
        let writer = try readMark(&reader)
        guard reader.byte == ASCII.comma else {
            try reader.expect(ASCII.closeBracket)
            return FoldedField(name: name, value: .plain(Array(value)), writer: writer)
        }
        guard let horizon = fold?.horizon, writer.seq > horizon else {
            throw reader.error("found runs of a text that was last spliced at or below the horizon")
        }
        try reader.expect(ASCII.comma)
        let runs = try readRuns(&reader, upTo: writer.seq)
        var written: TextMark?
        if reader.byte == ASCII.comma {
            try reader.expect(ASCII.comma)
            try reader.expect(ASCII.openBracket)
            let mark = try readMark(&reader)
            guard mark.seq > horizon, mark.seq <= writer.seq else {
                throw reader.error("found a plain write at seq \(mark.seq), expected \(horizon + 1) to \(writer.seq)")
            }
            written = mark
            try reader.expect(ASCII.closeBracket)
        }
        try reader.expect(ASCII.closeBracket)
        var text = SplicedText(written: written)
        for run in runs {
            let bytes = reader.bytes(run.text)
            text.append(
                bytes,
                scalars: JSONText(bytes).scalarCount,
                inserted: run.inserted.seq <= horizon ? .ancient : run.inserted,
                deleters: run.deleters
            )
        }
        text.finishAppending()
        let field = FoldedField(name: name, value: .text(text), writer: writer)
        var visible = [UInt8]()
        field.writeValue(to: &visible)
        guard visible.withUnsafeBytes({ $0.equals(value) }) else {
            throw reader.error("found a text whose runs spell another value")
        }
        return field
    }

    private struct Run {
        let text: Slice
        let inserted: TextMark
        var deleters: [TextMark] = []
    }

    private mutating func readRuns(_ reader: inout CanonicalReader, upTo newest: Seq) throws(ReelError) -> [Run] {
        var runs: [Run] = []
        var isFirst = true
        try reader.expect(ASCII.openBracket)
        while try reader.nextElement(&isFirst) {
            try reader.expect(ASCII.openBracket)
            let text = try reader.text()
            try reader.expect(ASCII.comma)
            var run = Run(text: text, inserted: try readMark(&reader))
            if reader.byte == ASCII.comma {
                try reader.expect(ASCII.comma)
                try reader.expect(ASCII.openBracket)
                var isFirstMark = true
                while try reader.nextElement(&isFirstMark) {
                    try reader.expect(ASCII.openBracket)
                    let mark = try readMark(&reader)
                    try reader.expect(ASCII.closeBracket)
                    guard mark.seq > run.deleters.last?.seq ?? .none else {
                        throw reader.error("found deleters that are not in the order of their seqs")
                    }
                    run.deleters.append(mark)
                }
                guard !run.deleters.isEmpty else { throw reader.error("found an empty list of deleters") }
            }
            try reader.expect(ASCII.closeBracket)
            guard text.count > 0, run.inserted.seq <= newest, run.deleters.last?.seq ?? .none <= newest else {
                throw reader.error("found an empty run, or one of a seq after the field's last writer")
            }
            runs.append(run)
        }
        return runs
    }

    /// Reads a seq and the number of a site.
    private mutating func readMark(_ reader: inout CanonicalReader) throws(ReelError) -> TextMark {
        let seq = try reader.integer()
        guard seq <= fold?.seq ?? .none else {
            throw reader.error("found seq \(seq), expected at most \(fold?.seq ?? .none)")
        }
        try reader.expect(ASCII.comma)
        return TextMark(seq: seq, site: named[try readNumber(&reader)])
    }
}
