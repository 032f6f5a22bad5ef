import Foundation
import ReelCore
import ReelLog
import ReelNet
import ReelNode
import TestSupport

@testable import ReelGateway

/// Records and batches for tests of the pure parts.
enum Batches {
    /// The content of one seq.
    enum Record {
        case event(StreamName, Site, Op, String)
        /// An event with this value.
        case raw(StreamName, Site, Op, [UInt8])
        case barrier
        case void
        case hole
    }

    static func value(_ site: Site, _ op: Op, _ text: String, base: Seq = -1) -> [UInt8] {
        insert(site, op, text, model: "task", base: base)
    }

    static func insert(_ site: Site, _ op: Op, _ text: String, model: String, base: Seq = -1) -> [UInt8] {
        let fields = #"{"t":"\#(text)"}"#
        return EventText.logged("insert", site, op, base: base, at: 1, model: model, id: "a", fields: fields).bytes
    }

    /// Returns a batch of partition 0 that begins at `from`.
    static func batch(from: Seq, _ records: [Record]) -> TailBatch {
        var entries: [RecordBatch.Entry] = []
        var kinds: [TailBatch.Kind] = []
        var streams: [StreamName] = []
        let owned = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 1)
        var used = 0
        func keep(_ bytes: [UInt8]) -> UnsafeRawBufferPointer {
            let part = UnsafeMutableRawBufferPointer(rebasing: owned[used..<used + bytes.count])
            part.copyBytes(from: bytes)
            used += bytes.count
            return UnsafeRawBufferPointer(part)
        }
        for (index, record) in records.enumerated() {
            let (key, bytes, kind): ([UInt8], [UInt8], TailBatch.Kind)
            func event(_ stream: StreamName, _ site: Site, _ op: Op) -> TailBatch.Kind {
                if !streams.contains(stream) { streams.append(stream) }
                return .event(stream: streams.firstIndex(of: stream)!, site: site, op: op)
            }
            switch record {
            case .event(let stream, let site, let op, let text):
                (key, bytes, kind) = (stream.key, value(site, op, text), event(stream, site, op))
            case .raw(let stream, let site, let op, let value):
                (key, bytes, kind) = (stream.key, value, event(stream, site, op))
            case .barrier: (key, bytes, kind) = (Array("~reel".utf8), Barrier.open.value, .barrier)
            case .void: (key, bytes, kind) = (Array("x".utf8), Array("no".utf8), .void)
            case .hole: continue
            }
            entries.append(
                RecordBatch.Entry(seq: from + Seq(index), witness: nil, key: keep(key), value: keep(bytes))
            )
            kinds.append(kind)
        }
        let seqs = from..<from + Seq(records.count)
        let address = UInt(bitPattern: owned.baseAddress)
        let batch = RecordBatch(partition: 0, seqs: seqs, entries: entries) {
            UnsafeMutableRawPointer(bitPattern: address)?.deallocate()
        }
        return TailBatch(records: batch, seqs: seqs, kinds: kinds, streams: streams)
    }

    /// Returns the frames in one write of a gateway.
    static func frames(_ sent: WebSocketFrame) throws -> [ServerFrame] {
        var bytes = sent.bytes[...]
        var frames: [ServerFrame] = []
        while !bytes.isEmpty {
            var (start, count) = (2, Int(bytes[bytes.startIndex + 1]))
            let sizes = count == 126 ? 2 : count == 127 ? 8 : 0
            if sizes > 0 { count = bytes.dropFirst(2).prefix(sizes).reduce(0) { $0 << 8 | Int($1) } }
            start += sizes
            let payload = Array(bytes.dropFirst(start).prefix(count))
            frames.append(
                try payload.withUnsafeBufferPointer { (bytes) throws(ReelError) in try ServerFrame(Bytes(bytes)) }
            )
            bytes = bytes.dropFirst(start + count)
        }
        return frames
    }
}

extension Ring {
    /// Returns the piece of an unfiltered query; nil if the ring does not hold its range.
    func piece(of stream: StreamName, from: Seq, to: Seq, bytes: Int, events: Int = .max) -> EventRange? {
        piece(
            for: LogQuery(
                stream: stream,
                partition: 0,
                from: from,
                to: to,
                bytes: bytes,
                events: events
            )
        )
    }
}
