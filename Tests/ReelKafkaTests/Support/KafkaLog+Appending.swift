import EventLogConformance
import ReelCore
import ReelKafka
import ReelLog
import TestSupport
import Testing

extension KafkaLog {
    /// Repeats an append until the log accepts it. Returns its seqs.
    @discardableResult
    func appendOnceItGoes(_ text: String) async throws -> [Seq] {
        var seqs: [Seq] = []
        try await eventually("the log takes an append") {
            do {
                seqs = try await append([LogAppend("s", text)])
                return true
            } catch let error as LogError {
                #expect([.logUnavailable, .forbidden].contains(error.code))
                return false
            }
        }
        return seqs
    }
}
