import CLinux
import Glibc
import Synchronization

/// The threads of this process that do what takes long: few, and of a low priority. Where there are too few cores for
/// all, what is short goes first, however much of this there is.
enum LowPriorityPool {
    /// Half of the cores; two at least, so that one piece that takes very long does not stop all others.
    static let threads = max(2, sysconf(Int32(_SC_NPROCESSORS_ONLN)) / 2)
    /// They get a tenth of a core that somebody else wants as well.
    static let niceness: Int32 = 10

    private struct Job: Sendable {
        let work: @Sendable () -> Void
        let ended: @Sendable () -> Void
    }

    private static let jobs = Mutex<[Job]>([])
    /// Counts the jobs that nobody has begun.
    private static let unbegun: UncheckedTransfer<UnsafeMutablePointer<sem_t>> = {
        let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
        sem_init(semaphore, 0, 0)
        return UncheckedTransfer(value: semaphore)
    }()

    /// How many could be started; they live as long as the process.
    private static let started: Int = (0..<threads).count { _ in
        var thread = pthread_t()
        let isStarted = pthread_create(&thread, nil, main, nil) == 0
        if isStarted { pthread_detach(thread) }
        return isStarted
    }

    private static let main: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { _ in
        _ = reel_name_thread("reel-long")
        // On Linux a thread has a priority of its own.
        setpriority(Int32(PRIO_PROCESS.rawValue), 0, niceness)
        while true {
            sem_wait(unbegun.value)
            let job = jobs.withLock { $0.isEmpty ? nil : $0.removeFirst() }
            guard let job else { continue }
            job.work()
            job.ended()
        }
    }

    /// False if the process got no thread for it.
    static var isPossible: Bool { started > 0 }

    /// Queues the work for one of the threads, then calls `ended` there. No thread waits for it: one of libuv's pool,
    /// of which there are four by default, would be lost to other work. Requires `isPossible`.
    static func run(_ work: @escaping @Sendable () -> Void, ended: @escaping @Sendable () -> Void) {
        jobs.withLock { $0.append(Job(work: work, ended: ended)) }
        sem_post(unbegun.value)
    }
}
