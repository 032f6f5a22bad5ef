import Glibc
import Synchronization

/// A small shell beside this process, which kills its children and removes its temporary folders should it be killed
/// itself.
///
/// The kernel's own signal for that (`PR_SET_PDEATHSIG`) comes when the thread that started a child ends; threads come
/// and go here, and a child must not go with them.
enum OrphanWatch {
    /// A child was started.
    static func began(_ pid: Int32) { say("process \(pid)\n") }
    /// A child has been reaped: its number may belong to somebody else now.
    static func ended(_ pid: Int32) { say("ended \(pid)\n") }
    /// A folder was made.
    static func made(_ folder: String) { say("folder \(folder)\n") }
    /// A folder is gone, or is to stay.
    static func left(_ folder: String) { say("left \(folder)\n") }

    /// It reads until this process is gone, whatever ended it. The lists have a newline before and after each word.
    private static let script = #"""
        trap '' HUP INT TERM
        IFS='
        '
        set -f; pids=$IFS; folders=$IFS
        while IFS=' ' read -r word name; do
            case $word in
            process) pids=$pids$name$IFS ;;
            ended) pids=${pids%%"$IFS$name$IFS"*}$IFS${pids#*"$IFS$name$IFS"} ;;
            folder) folders=$folders$name$IFS ;;
            left) folders=${folders%%"$IFS$name$IFS"*}$IFS${folders#*"$IFS$name$IFS"} ;;
            esac
        done
        for pid in $pids; do kill -9 "$pid"; done
        for folder in $folders; do rm -rf "$folder" || { sleep 1; rm -rf "$folder"; }; done
        """#

    /// Our end of what it reads; nil where it could not be started.
    private static let line = Mutex<Int32?>(start())

    private static func say(_ words: String) {
        line.withLock { line in
            guard let line else { return }
            let bytes = Array(words.utf8)
            // Short, and nobody else writes: it goes out whole.
            send(line, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        }
    }

    private static func start() -> Int32? {
        var ends: [Int32] = [0, 0]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
            return nil
        }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[1], 0)
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, 1, 2)
        let words = ["/bin/sh", "-c", script]
        var argv: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        defer { for argument in argv { free(argument) } }
        var child: pid_t = 0
        let result = posix_spawn(&child, "/bin/sh", &actions, nil, &argv, environ)
        close(ends[1])
        guard result == 0 else {
            close(ends[0])
            return nil
        }
        return ends[0]
    }
}
