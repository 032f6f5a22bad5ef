import Glibc

/// The default of a node's memory limit.
public enum MemoryLimit {
    /// Three quarters of the machine's memory, or of the process's control group limit if that is lower, in bytes.
    public static var standard: Int { Int(clamping: available / 4 * 3) }

    private static var available: UInt64 {
        let pages = UInt64(max(0, sysconf(Int32(_SC_PHYS_PAGES))))
        let machine = pages * UInt64(max(0, sysconf(Int32(_SC_PAGESIZE))))
        return groupLimits.reduce(machine > 0 ? machine : .max, min)
    }

    /// The memory limits of the process's control groups, versions 1 and 2. A container sees its own group at the root.
    private static var groupLimits: [UInt64] {
        var paths = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        for line in (text(of: "/proc/self/cgroup") ?? "").split(separator: "\n") where line.hasPrefix("0::/") {
            var path = line.dropFirst(3)
            while path.count > 1 {
                paths.append("/sys/fs/cgroup\(path)/memory.max")
                path = path[..<(path.lastIndex(of: "/") ?? path.startIndex)]
            }
        }
        return paths.compactMap { text(of: $0).flatMap { UInt64($0.prefix { $0.isNumber }) } }.filter { $0 > 0 }
    }

    private static func text(of path: String) -> String? {
        guard let file = fopen(path, "r") else { return nil }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = fread(&bytes, 1, bytes.count, file)
        return String(decoding: bytes[..<count], as: UTF8.self)
    }
}
