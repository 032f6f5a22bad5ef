/// The fields of an object's row, read one after another. Plain values are not copied.
package struct RowFields {
    /// A field of a row.
    package struct Field {
        /// The escaped name, without quotes.
        package let name: Bytes
        let content: Content
        let writer: TextMark

        /// The seq of the last writer.
        package var seq: Seq { writer.seq }
        /// The site of the last writer.
        package var site: Site { writer.site }

        /// Calls `body` with the value as canonical JSON.
        package func withValue<R>(_ body: (Bytes) -> R) -> R {
            switch content {
            case .plain(let value): return body(value)
            case .text(let text):
                var value: [UInt8] = [ASCII.quote]
                text.write(into: &value)
                value.append(ASCII.quote)
                return value.withUnsafeBytes(body)
            }
        }
    }

    enum Content {
        case plain(Bytes)
        case text(SplicedText)
    }

    /// True if the row is that of a tombstone, which has no fields.
    package let isDeleted: Bool
    /// The seq of the last event applied; for a tombstone, the seq of its delete.
    package let seq: Seq
    /// The number of fields.
    package let count: Int
    private var row: RowReader
    private var left: Int

    /// Begins to read a row that `Fold.writeRow(ofObject:to:)` has written.
    ///
    /// - Parameter bytes: the row, which must stay valid while its fields are in use.
    /// - Throws: `internal` for bytes that the fold cannot have written.
    package init(_ bytes: Bytes) throws(ReelError) {
        row = RowReader(bytes)
        isDeleted = try !row.flag()
        seq = try row.number()
        count = isDeleted ? 0 : try row.count()
        left = count
    }

    /// Returns the next field; nil after the last one.
    ///
    /// - Throws: `internal` or `bad_json` for bytes that the fold cannot have written.
    package mutating func next() throws(ReelError) -> Field? {
        guard left > 0 else {
            try row.end()
            return nil
        }
        left -= 1
        let name = try row.text()
        let writer = try row.mark()
        guard try row.flag() else { return Field(name: name, content: .plain(try row.value()), writer: writer) }
        return Field(name: name, content: .text(try text()), writer: writer)
    }

    private mutating func text() throws(ReelError) -> SplicedText {
        var text = SplicedText(written: try row.flag() ? try row.mark() : nil)
        while try row.flag() {
            let bytes = try row.text()
            let inserted = try row.mark()
            var deleters: [TextMark] = []
            for _ in 0..<(try row.count()) { deleters.append(try row.mark()) }
            text.append(bytes, scalars: JSONText(bytes).scalarCount, inserted: inserted, deleters: deleters)
        }
        text.finishAppending()
        return text
    }
}
