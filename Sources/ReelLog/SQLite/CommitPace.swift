/// Decides how long to wait before the next commit, if commits follow each other.
///
/// A commit costs nearly the same for one record as for twenty. The same is true of its effects: tails that wake, and
/// writes to clients. If records arrive one by one while a small group is committed, more will arrive. They then share
/// a commit one millisecond after the start of the last one. Writers that wait for their answers end up in one group;
/// then no record arrives during a commit, and no commit waits.
enum CommitPace {
    /// The minimum time from the start of one commit to the start of the next.
    private static let distance = Duration.milliseconds(1)
    /// The number of jobs at which a group is large enough: waiting would gain little.
    private static let jobsMax = 64
    /// The minimum number of arrivals for a pause: a single one may be a coincidence.
    private static let arrivalsMin = 2

    /// Returns how long to wait before the next commit.
    ///
    /// - Parameters:
    ///   - jobs: The number of jobs of the last commit.
    ///   - took: The duration of the last commit.
    ///   - arrivals: The number of jobs that arrived during it.
    static func pause(behind jobs: Int, took: Duration, arrivals: Int) -> Duration {
        guard jobs < jobsMax, arrivals >= arrivalsMin else { return .zero }
        return max(.zero, distance - took)
    }
}
