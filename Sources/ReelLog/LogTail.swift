/// Where a tail delivers. Called on threads of the log, one call at a time.
public protocol LogSink: AnyObject, Sendable {
    /// The next records. The batch may be kept and shared between threads.
    func received(_ batch: RecordBatch)
    /// Whether it would take a batch now without waiting for anybody. Who writes a log then hands it over himself: what
    /// the log does for all, such as to close it, is not asked for from in here.
    var hasRoom: Bool { get }
    /// The tail has ended: truncated, recreated, rolled back, unreadable.
    func failed(_ error: LogError)
}

extension LogSink {
    /// It may have to wait.
    public var hasRoom: Bool { false }
}

/// A running tail.
public protocol LogTail: AnyObject, Sendable {
    /// Ends it. No batch arrives after this has returned, unless it is called from inside the sink.
    func cancel()
}
