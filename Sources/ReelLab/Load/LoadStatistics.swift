/// What a load run has counted so far.
public struct LoadStatistics: Sendable {
    /// Events that were due.
    public var due = 0
    /// Events handed over to a gateway, also again.
    public var sent = 0
    /// Of these, the ones that had been handed over before.
    public var resent = 0
    /// Events acked.
    public var acked = 0
    /// Nacks, also those that only ask to send again.
    public var nacked = 0
    /// Events that a reader received.
    public var delivered = 0
    /// Connections that were lost after a welcome.
    public var reconnects = 0
    /// Holes that a reader asked for.
    public var fetches = 0
    /// Subscriptions that were too slow.
    public var lagged = 0
    /// From when an event was due to its ack, in nanoseconds.
    public var ack = LatencyHistogram()
    /// From when an event was due to its arrival at a reader, in nanoseconds.
    public var delivery = LatencyHistogram()
    /// From the question for the folded state until all that was there is there, in nanoseconds.
    public var coldStart = LatencyHistogram()
    /// Cold starts that did not come to their end.
    public var coldFailed = 0
    /// The longest time that a publisher with events under way heard no ack, in nanoseconds.
    public var longestPauseNs: Int64 = 0
    /// At the end of the run, the longest such time of each publisher, in nanoseconds.
    public var pause = LatencyHistogram()
    /// How often which code was said in a nack or an error.
    public var codes: [String: Int] = [:]
    /// One for each second of the run.
    public var seconds: [Second] = []

    /// What happened in one second.
    public struct Second: Sendable {
        /// Events acked.
        public var acked = 0
        /// Events received by readers.
        public var delivered = 0
        /// Their latencies to the ack.
        public var ack = LatencyHistogram()
        /// Their latencies to the arrival.
        public var delivery = LatencyHistogram()
        /// Connections with a welcome at its end.
        public var connected = 0
    }
}
