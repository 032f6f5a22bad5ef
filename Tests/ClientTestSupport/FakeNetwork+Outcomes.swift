import ReelCore

@testable import ReelClient

extension FakeNetwork {
    /// Returns the events of a site, with their outcomes after their seqs.
    func withOutcomes(_ events: [DeliveredEvent], of site: String, _ stream: StreamName) -> [DeliveredEvent] {
        events.compactMap { event in
            guard String(decoding: event.value, as: UTF8.self).contains(site) else { return nil }
            var fold = fold(stream, upTo: event.seq - 1)
            var parsed = ParsedEvent()
            var rules = PartitionRules(partition: 0, of: 1, phase: .open)
            let outcome = event.value.withUnsafeBytes { value -> Outcome in
                _ = stream.key.withUnsafeBytes { rules.read(key: $0, value: value, into: &parsed) }
                return fold.apply(parsed, value, seq: event.seq)
            }
            let value = Array("{\"outcome\":\"\(outcome)\",".utf8) + event.value.dropFirst()
            return DeliveredEvent(seq: event.seq, value: value)
        }
    }
}
