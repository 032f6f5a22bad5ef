/// A group of settings whose names another library defines, such as the properties of the Kafka client. The parser
/// treats each member as a separate setting; the help shows the family in one row.
struct SettingFamily<Member: AnySetting>: AnySetting {
    let name: String
    let valueName: String?
    let help: String
    let all: [Member]

    /// - Parameters:
    ///   - name: the placeholder for the names of the members, such as `kafka.NAME`.
    ///   - valueName: the placeholder for their values.
    ///   - all: the members.
    ///   - help: the help of the family.
    init(_ name: String, _ valueName: String, _ all: [Member], _ help: String) {
        self.name = name
        self.valueName = valueName
        self.all = all
        self.help = help
    }

    var fallbackText: String? { nil }
    var repeats: Bool { false }
    var expected: String { valueName ?? "" }
    var members: [any AnySetting] { all }

    /// Nil: only the members of a family have values.
    func value(of texts: [String]) -> (any Sendable)? { nil }
}
