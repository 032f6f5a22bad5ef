import Glibc

/// The limit of file descriptors of this process, and of each process that it starts.
enum DescriptorLimit {
    /// The descriptors that a process needs besides its sockets.
    static let spare = 64

    /// Raises the limit to `needed`, unless it is higher already. Returns nil, or the possible maximum if that is less
    /// than `needed`.
    static func reserve(_ needed: Int) -> Int? {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        guard limit.rlim_cur < rlim_t(needed) else { return nil }
        guard limit.rlim_max >= rlim_t(needed) else { return Int(limit.rlim_max) }
        limit.rlim_cur = rlim_t(needed)
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        return nil
    }

    /// Raises the limit for a run. `what`: the part of the run that needs the descriptors. Throws if fewer are
    /// possible.
    static func reserve(_ needed: Int, for what: String) throws(LoadFailure) {
        guard let limit = reserve(needed) else { return }
        throw LoadFailure(
            .descriptors,
            "\(what) need \(needed) file descriptors, and this process may have \(limit); \(advice(needed))"
        )
    }

    /// Returns the advice for a process with too few descriptors.
    static func advice(_ needed: Int) -> String {
        "allow more with `ulimit -n \(needed)` (as root, or by LimitNOFILE or limits.conf)"
    }
}
