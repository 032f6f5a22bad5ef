/// The JSON text of an event. Strings come between quotes as they are, so they may contain escapes.
package struct EventText: Sendable {
    package let text: String

    package var bytes: [UInt8] { Array(text.utf8) }

    /// Returns an event as a client sends it.
    ///
    /// - Parameter members: the members that depend on the type, such as `"model":"m","id":"a"`, in any order.
    package static func sent(
        _ type: String,
        _ site: some CustomStringConvertible,
        _ op: some BinaryInteger,
        _ members: String = ""
    ) -> EventText {
        let rest = members.isEmpty ? "" : "," + members
        return EventText(text: #"{"type":"\#(type)","site":"\#(site)","op":\#(op)\#(rest)}"#)
    }

    /// Returns an event as a log holds it, in canonical form. A member whose parameter is nil is absent.
    ///
    /// - Parameters:
    ///   - fields: the JSON object of the fields.
    ///   - ops: the JSON object of the operations on fields.
    package static func logged(
        _ type: String,
        _ site: some CustomStringConvertible,
        _ op: some BinaryInteger,
        base: Int64 = -1,
        at atMs: Int64? = nil,
        by user: String? = nil,
        isLast: Bool = false,
        model: String? = nil,
        id: String? = nil,
        fields: String? = nil,
        ops: String? = nil
    ) -> EventText {
        var text = atMs.map { #"{"at":\#($0),"# } ?? "{"
        text += #""base":\#(base),"#
        if let user { text += #""by":"\#(user)","# }
        if let fields { text += #""fields":\#(fields),"# }
        if let id { text += #""id":"\#(id)","# }
        if isLast { text += #""last":true,"# }
        if let model { text += #""model":"\#(model)","# }
        text += #""op":\#(op),"#
        if let ops { text += #""ops":\#(ops),"# }
        return EventText(text: text + #""site":"\#(site)","type":"\#(type)"}"#)
    }
}
