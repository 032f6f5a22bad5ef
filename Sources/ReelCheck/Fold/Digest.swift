extension StreamState {
    /// The digest: 64 bits as 16 hex digits, by which two states are compared. It is the sum of the hashes of all
    /// lines, so the order of the lines has no effect.
    var digest: String {
        hex(digestLines.reduce(0) { $0 &+ finalized(fnv1a($1)) }, digits: 16)
    }

    /// The lines that the digest is made of: one for each object, field, tombstone, site and rejected text, and one for
    /// the marks. If sites were retired, there is one more line for that.
    var digestLines: [[UInt8]] {
        var lines: [[UInt8]] = []
        for (name, object) in objects {
            lines.append(line("O", name.model, name.id, number(object.seq)))
            for (fieldName, field) in object.fields {
                lines.append(
                    line(
                        "F",
                        name.model,
                        name.id,
                        fieldName,
                        number(field.writer.seq),
                        field.writer.site.text,
                        Text(field.value.canonical)
                    )
                )
            }
        }
        for (name, seq) in tombstones {
            lines.append(line("D", name.model, name.id, number(seq)))
        }
        for (name, site) in sites {
            lines.append(
                line(
                    "S",
                    name.text,
                    number(site.op),
                    number(site.seq),
                    number(site.r),
                    site.by ?? Text(""),
                    number(site.end)
                )
            )
            for (field, seq) in site.lost {
                let object = field.object
                lines.append(line("L", name.text, object.model, object.id, field.field, number(seq)))
            }
        }
        if retired != -1 { lines.append(line("R", number(retired))) }
        lines.append(([Text("M"), number(Int64(consumed))] + marks.map(number)).joinedByZero)
        return lines
    }

    private func line(_ letter: String, _ fields: Text...) -> [UInt8] {
        ([Text(letter)] + fields).joinedByZero
    }

    private func number(_ number: Int64) -> Text {
        Text(String(number))
    }
}

extension [Text] {
    fileprivate var joinedByZero: [UInt8] {
        [UInt8](map(\.bytes).joined(separator: [0]))
    }
}
