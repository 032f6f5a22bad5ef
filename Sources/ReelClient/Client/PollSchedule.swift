internal import ReelCore

/// The schedule by which a client polls its streams that have no subscription. A pure state machine. It limits the
/// polls that one client sends to a node, and serves the streams in the order in which they are due.
struct PollSchedule {
    /// The maximum number of polls that run at the same time.
    static let underWayMax = 4
    /// The time between the starts of two polls.
    static let paceMs: Int64 = 20

    private struct Entry {
        var stream: StreamName
        var dueMs: Int64
    }

    private var entries: [Entry] = []
    private var underWay: Set<StreamName> = []
    private var lastMs: Int64?

    /// Schedules a poll of the stream at `dueMs`, or earlier if an earlier poll is scheduled. A stream whose poll is
    /// running is not scheduled.
    mutating func ask(_ stream: StreamName, atMs dueMs: Int64) {
        guard !underWay.contains(stream) else { return }
        if let index = entries.firstIndex(where: { $0.stream == stream }) {
            entries[index].dueMs = min(entries[index].dueMs, dueMs)
        } else {
            entries.append(Entry(stream: stream, dueMs: dueMs))
        }
    }

    /// Removes the stream from the schedule and from the running polls. It is not polled until `ask` is called again.
    mutating func remove(_ stream: StreamName) {
        entries.removeAll { $0.stream == stream }
        underWay.remove(stream)
    }

    /// Returns the next stream to poll now, and counts its poll as running. Returns nil if none is due or too many
    /// polls are running.
    mutating func next(nowMs: Int64) -> StreamName? {
        guard let nextMs, nextMs <= nowMs, let index = first else { return nil }
        let stream = entries.remove(at: index).stream
        underWay.insert(stream)
        lastMs = nowMs
        return stream
    }

    /// The time at which to call `next`; nil if nothing can be polled before another poll has ended or is scheduled.
    var nextMs: Int64? {
        guard underWay.count < Self.underWayMax, let index = first else { return nil }
        return max(entries[index].dueMs, lastMs.map { $0 + Self.paceMs } ?? entries[index].dueMs)
    }

    /// The index of the entry that is due first. Of several, the one that was scheduled first.
    private var first: Int? { entries.indices.min { entries[$0].dueMs < entries[$1].dueMs } }
}
