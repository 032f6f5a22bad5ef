/// Settings of one kind whose names come from elsewhere, such as the properties of the Kafka client. The parser takes
/// each of them as it takes any other; the help shows them in one row.
struct SettingFamily<Member: AnySetting>: AnySetting {
    let name: String
    let valueName: String?
    let help: String
    let all: [Member]

    /// `name` is what stands for the names of the members, such as `kafka.NAME`.
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

    /// A family has no value of its own.
    func value(of texts: [String]) -> (any Sendable)? { nil }
}
