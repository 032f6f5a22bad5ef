import Glibc
import ReelCore

/// A cache of parsed frames of events. A gateway sends the same bytes to all listeners. So bytes that arrived on
/// another socket already only need a comparison.
final class FrameCache {
    /// A frame of events, and the times at which its events were due.
    final class Frame {
        let proof: EventsProof
        let ref: [UInt8]?
        let dues: [Int64]
        fileprivate let bytes: [UInt8]

        fileprivate init(_ bytes: [UInt8], _ frame: ServerFrame.Events, ref: [UInt8]?, _ tables: inout ParsedEvent) {
            var dues: [Int64] = []
            proof = EventsProof(frame, tables: &tables) { event, value in
                if let due = LoadEvent.due(event, value) { dues.append(due) }
            }
            self.bytes = bytes
            self.ref = ref
            self.dues = dues
        }
    }

    private var slots = [Frame?](repeating: nil, count: 1 << 10)
    private var tables = ParsedEvent()

    /// Returns the cached frame with these bytes; nil if there is none.
    func frame(_ bytes: [UInt8]) -> Frame? {
        guard let frame = slots[Self.slot(bytes)], frame.bytes.count == bytes.count,
            memcmp(frame.bytes, bytes, bytes.count) == 0
        else { return nil }
        return frame
    }

    /// Parses a frame of events, and caches it.
    func add(_ bytes: [UInt8], _ events: ServerFrame.Events, ref: [UInt8]?) -> Frame {
        let frame = Frame(bytes, events, ref: ref, &tables)
        slots[Self.slot(bytes)] = frame
        return frame
    }

    /// Returns the slot, from the frame's length and its first bytes, which contain stream and range.
    private static func slot(_ bytes: [UInt8]) -> Int {
        var hash = FNV1a()
        bytes.withUnsafeBytes { hash.add(Bytes(rebasing: $0.prefix(80))) }
        return Int(truncatingIfNeeded: (hash.value ^ UInt64(bytes.count)) & 1_023)
    }
}
