/// When the next group is committed, where one follows the other.
///
/// A commit costs nearly the same for one record as for twenty, and so does all that it sets off: tails that wake,
/// writes to clients. Where records come one by one while a small group is committed, more are to come, and they share
/// a commit a millisecond behind the last one. Writers that wait for their answers before they go on come to be in one
/// group; then nothing comes meanwhile, and nothing waits.
enum CommitPace {
    /// From the beginning of a commit to that of the next one.
    private static let distance = Duration.milliseconds(1)
    /// A group of so many has little to gain.
    private static let jobsMax = 64
    /// One may come by chance.
    private static let arrivalsMin = 2

    /// So long the next commit is put off behind one of so many jobs that took so long, while others came.
    static func pause(behind jobs: Int, took: Duration, arrivals: Int) -> Duration {
        guard jobs < jobsMax, arrivals >= arrivalsMin else { return .zero }
        return max(.zero, distance - took)
    }
}
