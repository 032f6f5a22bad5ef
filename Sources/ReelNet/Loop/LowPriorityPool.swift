import CLinux
import Glibc
import Synchronization

/// The process's pool for long work: a few threads of low priority. On a machine with too few cores, short work runs
/// first, however much long work there is.
enum LowPriorityPool {
    /// The number of threads: half of the cores. It is two at least, so that one very long job does not stop all
    /// others.
    static let threads = max(2, sysconf(Int32(_SC_NPROCESSORS_ONLN)) / 2)
    /// The nice value of the threads. With it they get a tenth of a core that other threads want as well.
    static let niceness: Int32 = 10

    private struct Job: Sendable {
        let work: @Sendable () -> Void
        let ended: @Sendable () -> Void
    }

    private static let jobs = Mutex<[Job]>([])
    /// Counts the jobs that no thread has begun.
    private static let unbegun: UncheckedTransfer<UnsafeMutablePointer<sem_t>> = {
        let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
        sem_init(semaphore, 0, 0)
        return UncheckedTransfer(value: semaphore)
    }()

    /// The number of threads that could be started; they live as long as the process.
    private static let started: Int = (0..<threads).count { _ in
        var thread = pthread_t()
        let isStarted = pthread_create(&thread, nil, main, nil) == 0
        if isStarted { pthread_detach(thread) }
        return isStarted
    }

    private static let main: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { _ in
        _ = reel_name_thread("reel-long")
        // On Linux each thread has its own priority.
        setpriority(Int32(PRIO_PROCESS.rawValue), 0, niceness)
        while true {
            sem_wait(unbegun.value)
            let job = jobs.withLock { $0.isEmpty ? nil : $0.removeFirst() }
            guard let job else { continue }
            job.work()
            job.ended()
        }
    }

    /// False if the process got no thread for the pool.
    static var isPossible: Bool { started > 0 }

    /// Queues the work for one of the threads, which calls `ended` after it. Requires `isPossible`. From any thread.
    ///
    /// No thread of libuv's pool waits for the work. That pool has four threads by default, and a waiting one would be
    /// lost to other work.
    static func run(_ work: @escaping @Sendable () -> Void, ended: @escaping @Sendable () -> Void) {
        jobs.withLock { $0.append(Job(work: work, ended: ended)) }
        sem_post(unbegun.value)
    }
}
