/// The receiver of a tail's batches. The log calls it on its own threads, one call at a time.
public protocol LogSink: AnyObject, Sendable {
    /// Called with the next records. The batch may be kept, and shared between threads.
    func received(_ batch: RecordBatch)
    /// True if the sink can accept a batch without blocking. The log's writer thread may then call `received` directly.
    /// Inside that call, do not call operations that concern the whole log, such as `close()`.
    var hasRoom: Bool { get }
    /// Called when the tail has ended: truncated, recreated, rolled back, unreadable.
    func failed(_ error: LogError)
}

extension LogSink {
    /// False: by default a sink may block.
    public var hasRoom: Bool { false }
}

/// A running tail.
public protocol LogTail: AnyObject, Sendable {
    /// Ends the tail. No batch arrives after this call has returned, unless the sink itself makes the call.
    func cancel()
}
