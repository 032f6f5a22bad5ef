internal import ReelBase
public import ReelCore

extension EditingSession {
    /// The result of folding a session.
    public struct Folded: Sendable {
        /// The duration of parsing and folding, in nanoseconds.
        public var durationNs: Int64
        /// The folded state.
        public var fold: Fold
        /// The place where the folded text differs from the recorded one; nil: it is the recorded one.
        public var difference: TextDifference?
        /// The first edit that was not applied, by its index in the file, and its outcome; nil: all were.
        public var refused: (edit: Int, outcome: Outcome)?
    }

    /// Folds the session as records of one partition, without any node.
    ///
    /// - Parameter progress: is called with the number of folded edits, from time to time.
    public func folded(progress: (Int) -> Void = { _ in }) -> Folded {
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
        var refused: (edit: Int, outcome: Outcome)?
        let start = MonotonicClock.nowNs()
        stream.key.withUnsafeBytes { key in
            for (seq, record) in records.enumerated() {
                let outcome = record.withUnsafeBytes { value in
                    guard case .event = rules.read(key: key, value: value, into: &event) else { return Outcome.void }
                    return fold.apply(event, value, seq: Seq(seq))
                }
                if outcome != .applied, refused == nil, seq > 0 { refused = (edits[seq - 1].index, outcome) }
                if seq % Self.progressEdits == 0 { progress(seq) }
            }
        }
        let durationNs = MonotonicClock.nowNs() - start
        let text = fold.object(model: Self.model, id: Self.id)?.value(Self.field)
        return Folded(
            durationNs: durationNs,
            fold: fold,
            difference: text == endValue ? nil : TextDifference(found: Self.text(text ?? []), expected: endText),
            refused: refused
        )
    }

    /// The number of edits between two calls of a progress function.
    private static let progressEdits = 4_096

    /// Returns the text of a field's value; an empty text if the value is no string.
    public static func text(_ value: some Sequence<UInt8>) -> String {
        let bytes = Array(value)
        return bytes.withUnsafeBufferPointer { bytes in
            var reader = JSONReader(Bytes(bytes), levels: 1, shape: .badEvent)
            return (try? reader.string()) ?? ""
        }
    }

    /// The field's value at the end, as canonical JSON.
    public var endValue: [UInt8] {
        var value: [UInt8] = []
        value.append(quoted: endText)
        return value
    }
}
