import Glibc
import Synchronization

/// A small shell next to this process. It kills the children of this process and removes its temporary folders if this
/// process is killed.
///
/// The kernel's own signal for that (`PR_SET_PDEATHSIG`) is sent when the thread that started a child ends. Threads of
/// this process start and end all the time, and a child must outlive its thread.
enum OrphanWatch {
    /// Called when a child was started.
    static func began(_ pid: Int32) { say("process \(pid)\n") }
    /// Called when a child was reaped: its pid may belong to another process now.
    static func ended(_ pid: Int32) { say("ended \(pid)\n") }
    /// Called when a folder was created.
    static func made(_ folder: String) { say("folder \(folder)\n") }
    /// Called when a folder was removed, or must stay.
    static func left(_ folder: String) { say("left \(folder)\n") }

    /// The shell's script. It reads until this process has ended for any reason. The lists have a newline before and
    /// after each word.
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

    /// This process's end of the socket that the script reads; nil if the script could not be started.
    private static let line = Mutex<Int32?>(start())

    private static func say(_ words: String) {
        line.withLock { line in
            guard let line else { return }
            let bytes = Array(words.utf8)
            // The message is short and the lock is held, so it is sent whole.
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
