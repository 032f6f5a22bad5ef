import Glibc

/// How many file descriptors this process may have, and each that it starts.
enum DescriptorLimit {
    /// What a process needs besides its sockets.
    static let spare = 64

    /// Raises the limit to `needed`, unless it is higher; returns the most that may be had where that is less.
    static func reserve(_ needed: Int) -> Int? {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        guard limit.rlim_cur < rlim_t(needed) else { return nil }
        guard limit.rlim_max >= rlim_t(needed) else { return Int(limit.rlim_max) }
        limit.rlim_cur = rlim_t(needed)
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        return nil
    }

    /// The same for a run; throws where fewer may be had. `what` needs them.
    static func reserve(_ needed: Int, for what: String) throws(LoadFailure) {
        guard let most = reserve(needed) else { return }
        throw LoadFailure(
            .descriptors,
            "\(what) need \(needed) file descriptors, and this process may have \(most); \(advice(needed))"
        )
    }

    /// What to do where there are not enough.
    static func advice(_ needed: Int) -> String {
        "allow more with `ulimit -n \(needed)` (as root, or by LimitNOFILE or limits.conf)"
    }
}
