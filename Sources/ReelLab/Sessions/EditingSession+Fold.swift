public import ReelCore

extension EditingSession {
    /// The result of folding a session.
    public struct Folded: Sendable {
        /// The duration of parsing and folding, in nanoseconds.
        public var durationNs: Int64
        /// The folded state.
        public var fold: Fold
        /// True if the text ends as it did in the authors' editors.
        public var isRight: Bool
    }

    /// Folds the session as records of one partition, without any node.
    public func folded() -> Folded {
        let sites = (0...authors).map { Site(high: 0x7265_6c61_7900_4000, low: 0x8000_0000_0000_0000 | UInt64($0)) }
        var records: [[UInt8]] = [opening(site: sites[authors])]
        for edit in edits {
            var record: [UInt8] = []
            // The opening is seq 0, so an edit's seq is its index + 1.
            write(edit, site: sites[edit.author], base: Seq(edit.base) + 1, to: &record)
            records.append(record)
        }
        let stream = StreamName("recording")!
        var fold = Fold(stream: stream, partition: 0, epoch: Epoch(0))
        var rules = PartitionRules(partition: 0, of: 1)
        var event = ParsedEvent()
        let start = Clock.nowNs()
        stream.key.withUnsafeBytes { key in
            for (seq, record) in records.enumerated() {
                record.withUnsafeBytes { value in
                    if case .event = rules.read(key: key, value: value, into: &event) {
                        _ = fold.apply(event, value, seq: Seq(seq))
                    }
                }
            }
        }
        let durationNs = Clock.nowNs() - start
        let text = fold.object(model: Self.model, id: Self.id)?.value(Self.field)
        return Folded(durationNs: durationNs, fold: fold, isRight: text == endValue)
    }

    /// The field's value at the end, as canonical JSON.
    public var endValue: [UInt8] {
        var value: [UInt8] = []
        value.append(quoted: endText)
        return value
    }
}
