/// Settings that several commands share, so that a name means the same everywhere.
enum CommonSettings {
    static let json = Setting<Bool>.flag("json", "print JSON, one object a line, for a program to read")
}
