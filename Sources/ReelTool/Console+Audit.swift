import Glibc
import ReelNode

extension Console {
    /// Writes an audit line to standard error: the user that ran `command`, the log, and `detail`, the change that it
    /// made. For commands that change a log.
    func audit(_ command: String, log: String, _ detail: String) {
        let logger = Logger { self.note(String($0.dropLast())) }
        logger.audit("operator command", ["command": command, "user": Self.user, "log": log, "detail": detail])
    }

    /// The name of the process's user; its number if it has no name.
    private static var user: String {
        guard let entry = getpwuid(getuid()), let name = entry.pointee.pw_name else { return "\(getuid())" }
        return String(cString: name)
    }
}
