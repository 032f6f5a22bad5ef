import Foundation

/// Programs of others that tests need. A test whose program is missing is skipped, with a message.
enum Installed {
    static func has(_ program: String) -> Bool {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        return path.split(separator: ":").contains { FileManager.default.isExecutableFile(atPath: "\($0)/\(program)") }
    }

    static let haproxy = has("haproxy")
    static let prometheus = has("prometheus")
    static let promtool = has("promtool")
    static let python = FileManager.default.isExecutableFile(atPath: "/usr/bin/python3")
    static let pythonYAML = FileManager.default.fileExists(atPath: "/usr/lib/python3/dist-packages/yaml/__init__.py")
}
