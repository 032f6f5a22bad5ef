import Glibc
import ReelNode

extension Console {
    /// Writes the audit line of a command that has changed something, to standard error: who ran it on which log.
    /// `detail`: what it changed.
    func audit(_ command: String, log: String, _ detail: String) {
        let logger = Logger { self.note(String($0.dropLast())) }
        logger.audit("operator command", ["command": command, "user": Self.user, "log": log, "detail": detail])
    }

    /// The name of the user of the process, else the number.
    private static var user: String {
        guard let entry = getpwuid(getuid()), let name = entry.pointee.pw_name else { return "\(getuid())" }
        return String(cString: name)
    }
}
