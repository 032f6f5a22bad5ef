import Glibc
import ReelBase

/// The `process_*` metrics that Prometheus client libraries export.
enum ProcessMetrics {
    /// The time of the first access, which approximates the start of the process.
    private static let startedSeconds = Int(WallClock.nowMs() / 1_000)

    static func register(_ metrics: Metrics, build: String, commit: String) {
        metrics.gauge(
            "reel_build_info",
            "The version of the program and the commit that it was built from; always 1.",
            labels: ["version": build, "commit": commit]
        ) { 1 }
        metrics.timedCounter("process_cpu_seconds_total", "Processor time that the process has used.") {
            var usage = rusage()
            getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
            let seconds = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec
            return .seconds(seconds) + .microseconds(Int(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec))
        }
        let started = startedSeconds
        metrics.gauge("process_start_time_seconds", "When the process began, in seconds of the Unix epoch.") { started }
        metrics.gauge("process_resident_memory_bytes", "Resident memory of the process.") { memory(1) }
        metrics.gauge("process_virtual_memory_bytes", "Virtual memory of the process.") { memory(0) }
        metrics.gauge("process_open_fds", "Descriptors that are open.") { openDescriptors }
        metrics.gauge("process_max_fds", "Descriptors that may be open.") {
            var limit = rlimit()
            getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            return Int(clamping: limit.rlim_cur)
        }
    }

    /// Returns a field of `/proc/self/statm` in bytes.
    private static func memory(_ field: Int) -> Int {
        guard let file = fopen("/proc/self/statm", "r") else { return 0 }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = fread(&bytes, 1, bytes.count, file)
        let fields = String(decoding: bytes[..<count], as: UTF8.self).split(separator: " ")
        guard fields.indices.contains(field), let pages = Int(fields[field]) else { return 0 }
        return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
    }

    private static var openDescriptors: Int {
        guard let folder = opendir("/proc/self/fd") else { return 0 }
        defer { closedir(folder) }
        var count = 0
        while readdir(folder) != nil { count += 1 }
        // Without `.`, `..` and the descriptor of the folder itself.
        return max(0, count - 3)
    }
}

/// The metrics of the log's files and of the disks of folders.
enum DiskMetrics {
    /// Registers the sizes of the file of an SQLite log and of its WAL.
    static func register(_ metrics: Metrics, logFile path: String) {
        metrics.gauge("reel_log_size_bytes", "Bytes of the log's file.") { size(path) }
        metrics.gauge("reel_log_wal_bytes", "Bytes of the log's WAL.") { size(path + "-wal") }
    }

    private static func size(_ path: String) -> Int {
        var file = stat()
        return stat(path, &file) == 0 ? Int(file.st_size) : 0
    }

    /// Registers the space on the disk of a folder. `name` is the folder's role: `log` or `data`.
    static func register(_ metrics: Metrics, folder path: String, as name: String) {
        metrics.gauge(
            "reel_disk_free_bytes",
            "Free space for this user on the disk of a folder.",
            labels: ["folder": name]
        ) {
            var disk = statvfs()
            return statvfs(path, &disk) == 0 ? Int(clamping: UInt64(disk.f_bavail) * UInt64(disk.f_frsize)) : 0
        }
        metrics.gauge("reel_disk_size_bytes", "The size of the disk of a folder.", labels: ["folder": name]) {
            var disk = statvfs()
            return statvfs(path, &disk) == 0 ? Int(clamping: UInt64(disk.f_blocks) * UInt64(disk.f_frsize)) : 0
        }
    }
}

/// The metrics of the certificate of a node with TLS.
enum CertificateMetrics {
    static func register(_ metrics: Metrics, expiresAt: @escaping @Sendable () -> Int) {
        metrics.gauge(
            "reel_certificate_expiry_timestamp_seconds",
            "When the node's certificate expires, in seconds of the Unix epoch.",
            measure: expiresAt
        )
    }
}
