/// Where a tail delivers. Called on threads of the log, one call at a time.
public protocol LogSink: AnyObject, Sendable {
    /// The next records. The batch may be kept and shared between threads.
    func received(_ batch: RecordBatch)
    /// The tail has ended: truncated, recreated, rolled back, unreadable.
    func failed(_ error: LogError)
}

/// A running tail.
public protocol LogTail: AnyObject, Sendable {
    /// Ends it. No batch arrives after this has returned, unless it is called from inside the sink.
    func cancel()
}
