import Glibc
import Synchronization

/// A small shell beside this process, which kills its children should it be killed itself.
///
/// The kernel's own signal for that (`PR_SET_PDEATHSIG`) comes when the thread that started a child ends; threads come
/// and go here, and a child must not go with them.
enum OrphanWatch {
    /// A child was started.
    static func began(_ pid: Int32) { say("add \(pid)\n") }
    /// A child has been reaped: its number may belong to somebody else now.
    static func ended(_ pid: Int32) { say("remove \(pid)\n") }

    /// It reads until this process is gone, whatever ended it.
    private static let script = """
        trap '' HUP INT TERM; own=' '
        while read -r word pid; do
            case $word in
            add) own="$own$pid " ;;
            remove) own="${own%% $pid *} ${own#* $pid }" ;;
            esac
        done
        [ "$own" = ' ' ] || kill -9 $own
        """

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
