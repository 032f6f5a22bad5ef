/// The members of an object. Callers remove the known members one after the other, so that the remaining members are
/// the unknown ones.
struct Members {
    private var remaining: [Text: JSON] = [:]

    init(_ json: JSON) throws(Fault) {
        guard let members = json.members else { throw Fault("not an object") }
        for member in members { remaining[member.name] = member.value }
    }

    func has(_ name: String) -> Bool {
        remaining[Text(name)] != nil
    }

    mutating func take(_ name: String) throws(Fault) -> JSON {
        guard let value = remaining.removeValue(forKey: Text(name)) else { throw Fault("no \(name)") }
        return value
    }

    /// Throws if a member remains.
    func end() throws(Fault) {
        if let unknown = remaining.keys.min() { throw Fault("unknown member \(unknown.string)") }
    }

    mutating func text(_ name: String) throws(Fault) -> Text {
        guard let text = try take(name).text else { throw Fault("\(name) is no text") }
        return text
    }

    mutating func array(_ name: String) throws(Fault) -> [JSON] {
        guard let array = try take(name).array else { throw Fault("\(name) is no array") }
        return array
    }

    mutating func integer(_ name: String, from smallest: Int64) throws(Fault) -> Int64 {
        guard let integer = try take(name).integer, integer >= smallest else {
            throw Fault("\(name) is no integer from \(smallest) to 2^53 - 1")
        }
        return integer
    }

    mutating func name(_ name: String) throws(Fault) -> Text {
        let text = try text(name)
        guard text.isName else { throw Fault("\(name) is no name") }
        return text
    }

    mutating func optionalName(_ name: String) throws(Fault) -> Text? {
        has(name) ? try self.name(name) : nil
    }

    mutating func site(_ name: String) throws(Fault) -> Site {
        guard let site = Site(try text(name)) else { throw Fault("\(name) is no UUID in lower case") }
        return site
    }

    /// Removes and returns the members of an object with field names as keys; empty if the object is absent.
    mutating func named(_ name: String) throws(Fault) -> [(name: Text, value: JSON)] {
        guard has(name) else { return [] }
        guard let members = try take(name).members else { throw Fault("\(name) is no object") }
        guard members.allSatisfy(\.name.isName) else { throw Fault("\(name) holds what is no field name") }
        return members.map { ($0.name, $0.value) }
    }
}
