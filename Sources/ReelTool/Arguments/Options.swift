/// The arguments of a command: the values of its settings, and its operands.
struct Options: Sendable {
    private let values: [String: any Sendable]
    let operands: [String]

    init(values: [String: any Sendable], operands: [String]) {
        self.values = values
        self.operands = operands
    }

    /// The value of a setting: from the command line, else from the environment, else the default.
    subscript<Value>(_ setting: Setting<Value>) -> Value {
        values[setting.name] as? Value ?? setting.fallback
    }

    /// Returns the value of a setting that must be given.
    ///
    /// - Throws: a `CommandError` with exit code 2 if the setting is missing.
    func required<Value>(_ setting: Setting<Value?>) throws(CommandError) -> Value {
        guard let value = self[setting] else {
            throw CommandError(.usage, "--\(setting.name) is missing; expected is \(setting.usage)")
        }
        return value
    }

    /// The members of a family that were given, with their values.
    subscript<Member>(_ family: SettingFamily<Member>) -> [(member: Member, value: String)] {
        family.all.compactMap { member in (values[member.name] as? String).map { (member, $0) } }
    }
}
