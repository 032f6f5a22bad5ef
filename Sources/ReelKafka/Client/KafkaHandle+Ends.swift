internal import CRdkafka
internal import ReelCore

extension KafkaHandle {
    /// The first offset kept of a partition and the one that will be given next, as its leader says; or why not.
    ///
    /// librdkafka asks for each of them, and 2.0.2 forgets that one question has failed where the other is answered
    /// right behind it: then both seem to be the same. So an answer like that counts only if it comes twice.
    func ends(of topic: String, _ partition: Int, untilMs: Int64) -> (code: rd_kafka_resp_err_t, ends: Range<Seq>) {
        var before: Seq?
        while true {
            var (low, high): (Int64, Int64) = (0, 0)
            let leftMs = Int32(clamping: max(1, untilMs - nowMs()))
            let code = rd_kafka_query_watermark_offsets(pointer, topic, Int32(partition), &low, &high, leftMs)
            guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { return (code, 0..<0) }
            let ends = max(0, low)..<max(0, low, high)
            if !ends.isEmpty || before == ends.upperBound { return (code, ends) }
            before = ends.upperBound
        }
    }
}
