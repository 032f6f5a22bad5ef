/// A line of a history or of a dump that proves a violation. To number the line, the file must be read from its
/// beginning. The line is therefore read only when it is shown, because only a few of many violations are shown.
struct Quote: Sendable, CustomStringConvertible {
    let file: MappedFile
    /// The offset at which the line begins.
    let start: Int

    /// The text `NAME:LINE: text`, with the line shortened.
    var description: String {
        let end = file.end(ofLineAt: start) ?? file.bytes.count
        let shown = min(end, start + Self.shownBytes)
        let text = String(decoding: file.bytes[start..<shown], as: UTF8.self)
        return "\(place): \(text)\(shown < end ? "…" : "")"
    }

    /// The text `NAME:LINE`.
    var place: String { file.place(lineAt: start) }

    private static let shownBytes = 240
}
