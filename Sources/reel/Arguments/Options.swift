/// What was asked of a command: the value of each setting, and the operands.
struct Options: Sendable {
    private let values: [String: any Sendable]
    let operands: [String]

    init(values: [String: any Sendable], operands: [String]) {
        self.values = values
        self.operands = operands
    }

    /// From the command line, else from the environment, else the default.
    subscript<Value>(_ setting: Setting<Value>) -> Value {
        values[setting.name] as? Value ?? setting.fallback
    }

    /// A setting that the command cannot do without.
    func required<Value>(_ setting: Setting<Value?>) throws(CommandError) -> Value {
        guard let value = self[setting] else {
            throw CommandError(.usage, "--\(setting.name) is missing; expected is \(setting.usage)")
        }
        return value
    }

    /// What was said of the members of a family, by their names.
    subscript<Member>(_ family: SettingFamily<Member>) -> [(member: Member, value: String)] {
        family.all.compactMap { member in (values[member.name] as? String).map { (member, $0) } }
    }
}
