import Dispatch
import ReelBase
import ReelLog
import Synchronization

/// Events that are typical for apps: objects with five fields, updates of about 200 bytes, four sites. An update
/// replaces a value of about the same length, so the state does not grow.
enum BenchEvents {
    /// The padding of values. Its first character is the mark that the readers in C count.
    private static let pad = "#" + String(repeating: "x", count: 199)
    private static let insertedBytes = 38

    /// Returns the inserts of `objects` objects, for seqs from `first` on.
    static func inserts(_ objects: Int, from first: Int = 0) -> [[UInt8]] {
        (0..<objects).map { number in
            let fields = (0..<5).map { #""field\#($0)":"\#(pad.prefix(insertedBytes))""# }.joined(separator: ",")
            return event(number, op: number / 4, seq: first + number, fields: fields, type: "insert", id: number)
        }
    }

    /// Returns updates of one field each, of random objects. Their seqs follow those of the inserts.
    static func updates(_ count: Int, of objects: Int) -> [[UInt8]] {
        var generator = SeededGenerator(seed: 1)
        return (0..<count).map { number in
            let seq = objects + number
            let id = Int(generator.next() % UInt64(objects))
            let head = #""field\#(number % 5)":""#
            let bare = event(seq, op: seq / 4, seq: seq, fields: head + "\"", type: "update", id: id).count
            let fields = head + pad.prefix(max(0, 200 - bare)) + "\""
            return event(seq, op: seq / 4, seq: seq, fields: fields, type: "update", id: id)
        }
    }

    private static func event(_ number: Int, op: Int, seq: Int, fields: String, type: String, id: Int) -> [UInt8] {
        let site = "00000000-0000-4000-8000-00000000000\(number % 4)"
        return Array(
            (#"{"at":1795285748235,"base":\#(seq - 1),"fields":{"# + fields
                + #"},"id":"object-\#(id)","model":"task","op":\#(op),"site":"\#(site)","type":"\#(type)"}"#).utf8
        )
    }
}

extension EventLog {
    /// Appends these events to a stream in partition 0, and waits until they are durable.
    func fill(_ values: [[UInt8]], of stream: String = "bench") throws {
        try fill(appends: values.map { LogAppend(key: Array(stream.utf8), value: $0) })
    }

    /// Appends these records to partition 0, and waits until they are durable.
    func fill(appends: [LogAppend]) throws {
        for start in stride(from: 0, to: appends.count, by: 10_000) {
            let part = Array(appends[start..<min(appends.count, start + 10_000)])
            let answer = Mutex<LogError?>(nil)
            let done = DispatchSemaphore(value: 0)
            append(part, to: 0) { result in
                if case .failure(let error) = result { answer.withLock { $0 = error } }
                done.signal()
            }
            done.wait()
            if let error = answer.withLock({ $0 }) { throw error }
        }
    }
}
