/// A line of a history or of a dump that proves something. Its number has to be counted from the beginning of the file,
/// so the line is read when it is shown, and not before: of very many violations only a few are.
struct Quote: Sendable, CustomStringConvertible {
    let file: MappedFile
    /// The offset at which the line begins.
    let start: Int

    /// `NAME:LINE: text`, the text shortened.
    var description: String {
        let end = file.end(ofLineAt: start) ?? file.bytes.count
        let shown = min(end, start + Self.shown)
        let text = String(decoding: file.bytes[start..<shown], as: UTF8.self)
        return "\(place): \(text)\(shown < end ? "…" : "")"
    }

    /// `NAME:LINE`.
    var place: String { file.place(lineAt: start) }

    private static let shown = 240
}
