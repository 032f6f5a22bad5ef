import Testing

@testable import ReelLog

/// Tests the pause between two commits.
@Suite struct CommitPaceTests {
    private func pause(_ jobs: Int, _ micros: Int64, _ arrivals: Int) -> Duration {
        CommitPace.pause(behind: jobs, took: .microseconds(micros), arrivals: arrivals)
    }

    @Test("records that arrive one by one during a commit wait for later ones, at most a millisecond")
    func waitsForLaterRecords() {
        #expect(pause(1, 300, 2) == .microseconds(700))
        #expect(pause(63, 0, 1_000) == .milliseconds(1))
        #expect(pause(3, 5_000, 9) == .zero, "the commit took longer")
    }

    @Test("records do not wait after a large group, or if at most one arrives during the commit") func doesNotWait() {
        #expect(pause(16, 300, 0) == .zero)
        #expect(pause(1, 300, 1) == .zero)
        #expect(pause(64, 300, 64) == .zero)
    }
}
