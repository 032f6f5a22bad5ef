import ReelCore

/// An event in the log of a scripted node.
struct LoggedEvent {
    enum Kind: String { case insert, update }

    /// The number of sites that have inserted the objects of a snapshot. The site with this number has inserted none.
    static let sites = 4

    let seq: Seq
    /// The canonical JSON.
    let json: [UInt8]

    /// Creates an event.
    ///
    /// - Parameters:
    ///   - kind: the kind of the event.
    ///   - model: the model of the object.
    ///   - id: the id of the object.
    ///   - content: the member `fields` or `ops` as canonical JSON.
    ///   - seq: the seq of the event. The author knows all events before it.
    ///   - site: the number of the author.
    ///   - op: the number of the event among those of the author.
    init(
        _ kind: Kind,
        _ model: String,
        _ id: String,
        _ content: String,
        seq: Seq,
        site: Int = sites,
        op: Int
    ) {
        // The members are sorted by their names, and `ops` comes after `op`.
        let (fields, ops) = content.hasPrefix(#""ops""#) ? ("", "," + content) : (content + ",", "")
        let head = #"{"at":1795285748235,"base":\#(seq - 1),"#
        let name = #""id":"\#(id)","model":"\#(model)","op":\#(op)"#
        let tail = #","site":"00000000-0000-4000-8000-00000000000\#(site)","type":"\#(kind)"}"#
        self.seq = seq
        json = Array((head + fields + name + ops + tail).utf8)
    }
}
