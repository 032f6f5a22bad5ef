public import ReelCore

/// The events of a session in one stream. A third site makes the object that holds the text. Then each edit is an
/// update with a splice, written by its author's site.
extension EditingSession {
    /// The model of the object that holds the text.
    public static let model = "note"
    /// The object's id.
    public static let id = "recording"
    /// The field's name.
    public static let field = "text"

    /// Returns the event that makes the object with the text before the first edit. It is op 0 of its site.
    public func opening(site: Site) -> [UInt8] {
        var event: [UInt8] = []
        event.append(#"{"base":-1,"fields":{"text":"#)
        event.append(quoted: startText)
        event.append(#"},"id":"recording","model":"note","op":0,"site":"#)
        event.append(quoted: site)
        event.append(#","type":"insert"}"#)
        return event
    }

    /// Appends the canonical event of an edit.
    ///
    /// - Parameters:
    ///   - edit: the edit.
    ///   - site: the site of the edit's author.
    ///   - base: the seq in the log of the edit's base.
    ///   - event: the bytes to append to.
    public func write(_ edit: Edit, site: Site, base: Seq, to event: inout [UInt8]) {
        event.append(#"{"base":"#)
        event.append(integer: base)
        event.append(#","id":"recording","model":"note","op":"#)
        event.append(integer: edit.op)
        event.append(#","ops":{"text":{"splice":["#)
        for (index, patch) in edit.patches.enumerated() {
            if index > 0 { event.append(UInt8(ascii: ",")) }
            event.append(UInt8(ascii: "["))
            event.append(integer: patch.offset)
            event.append(UInt8(ascii: ","))
            event.append(integer: patch.removed)
            event.append(UInt8(ascii: ","))
            event.append(quoted: patch.text)
            event.append(UInt8(ascii: "]"))
        }
        event.append(#"]}},"site":"#)
        event.append(quoted: site)
        event.append(#","type":"update"}"#)
    }
}
