/// The counts of a load run up to now.
public struct LoadStatistics: Sendable {
    /// Events that were due.
    public var due = 0
    /// Events handed over to a gateway, including repeated ones.
    public var sent = 0
    /// Events that were handed over before and sent again.
    public var resent = 0
    /// Events acked.
    public var acked = 0
    /// Nacks, including those that only request sending again.
    public var nacked = 0
    /// Events that a reader received.
    public var delivered = 0
    /// Connections that were lost after `welcome`.
    public var reconnects = 0
    /// Fetches of gaps by readers.
    public var fetches = 0
    /// Subscriptions that ended because the reader was too slow.
    public var lagged = 0
    /// The time from when an event was due to its ack, in nanoseconds.
    public var ack = LatencyHistogram()
    /// The time from when an event was due to its arrival at a reader, in nanoseconds.
    public var delivery = LatencyHistogram()
    /// The time from the request for the folded state until everything up to the head has arrived, in nanoseconds.
    public var coldStart = LatencyHistogram()
    /// Cold starts that did not finish.
    public var coldFailed = 0
    /// The longest time without an ack of a publisher that waited for one, in nanoseconds.
    public var longestPauseNs: Int64 = 0
    /// At the end of the run, the longest such time of each publisher, in nanoseconds.
    public var pause = LatencyHistogram()
    /// The number of nacks and errors, by code.
    public var codes: [String: Int] = [:]
    /// The counts of each second of the run.
    public var seconds: [Second] = []

    /// The counts of one second.
    public struct Second: Sendable {
        /// Events acked.
        public var acked = 0
        /// Events received by readers.
        public var delivered = 0
        /// The time from due to ack of these events, in nanoseconds.
        public var ack = LatencyHistogram()
        /// The time from due to arrival of these events, in nanoseconds.
        public var delivery = LatencyHistogram()
        /// The number of connections with a `welcome` at the end of the second.
        public var connected = 0
    }
}
