internal import CRdkafka
internal import ReelBase
internal import ReelCore

extension KafkaHandle {
    /// Returns the first offset of a partition and its next offset, as the leader reports them, or the error code.
    ///
    /// librdkafka sends one question for each of them. Version 2.0.2 loses the failure of one question if the answer to
    /// the other arrives right after it; then both offsets seem equal. So equal offsets count only if they are returned
    /// twice.
    func ends(of topic: String, _ partition: Int, untilMs: Int64) -> (code: rd_kafka_resp_err_t, ends: Range<Seq>) {
        var before: Seq?
        while true {
            var (low, high): (Int64, Int64) = (0, 0)
            let leftMs = Int32(clamping: max(1, untilMs - MonotonicClock.nowMs()))
            let code = rd_kafka_query_watermark_offsets(pointer, topic, Int32(partition), &low, &high, leftMs)
            guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { return (code, 0..<0) }
            let ends = max(0, low)..<max(0, low, high)
            if !ends.isEmpty || before == ends.upperBound { return (code, ends) }
            before = ends.upperBound
        }
    }
}
