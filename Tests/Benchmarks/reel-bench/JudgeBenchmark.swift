import Foundation
import ReelBase
import ReelCheck
import ReelCore

/// Measures the checker on the histories and the log of a long run. Each event is published, acked, and read by two
/// readers.
enum JudgeBenchmark {
    static func run() async throws -> [Measured] {
        let events = 5_000_000
        return try await withFolder { folder in
            try LongRun(folder: folder).write(events)
            let clock = ContinuousClock()
            let start = clock.now
            let verdict = await (try RunCheck(folder: folder, logs: [])).verdict()
            let taken = clock.now - start
            guard verdict.word == .valid else { throw BenchmarkError("expected valid, found \(verdict.text)") }
            return [
                Measured(
                    work: "`reel check` of \(events) events, each acked, and read by two readers",
                    value: Double(taken.components.seconds) + Double(taken.components.attoseconds) / 1e18,
                    unit: "s",
                    goal: .atMost(60)
                )
            ]
        }
    }
}

/// A writer of the evidence of a valid run: 256 sites of 16 publishers write to 64 streams in 4 partitions.
private final class LongRun {
    private static let (partitions, streams, sites, publishers, readers) = (4, 64, 256, 16, 2)
    /// The number of events in a publish and in a frame.
    private static let batch = 32
    private static let epoch = Epoch(0xaa)

    private struct Stream {
        let name: StreamName
        let partition: Int
        /// The last seq that the readers hold.
        var proven: Seq = .none
        /// The events of the next frame, as JSON.
        var events: [UInt8] = []
        var count = 0
    }

    private struct Writer {
        let site: Site
        var op: Op = 0
        /// The seqs that are not acked yet.
        var seqs: [Seq] = []
    }

    private var heads = [Seq](repeating: .none, count: partitions)
    private var streams: [Stream] = []
    private var writers: [Writer] = []
    private let log: LineFile
    private let published: [LineFile]
    private let read: [LineFile]
    private var value: [UInt8] = []
    private var ms: Int64 = 1_000

    init(folder: String) throws {
        streams = (0..<Self.streams).compactMap { StreamName("stream-\($0)") }.map {
            Stream(name: $0, partition: $0.partition(of: Self.partitions))
        }
        writers = (0..<Self.sites).map { Writer(site: Site(high: 0x4000, low: 1 << 63 | UInt64($0))) }
        log = try LineFile("\(folder)/log.jsonl")
        published = try (0..<Self.publishers).map { try LineFile("\(folder)/publisher-\($0).history.jsonl") }
        read = try (0..<Self.readers).map { try LineFile("\(folder)/reader-\($0).history.jsonl") }
        for file in published + read {
            file.add(#"{"e":"begin","ms":1,"history":1,"kind":"client","wall":1000001,"who":"bench"}"#)
            file.add(
                #"{"e":"connect","ms":2,"epoch":"\#(Self.epoch)","node":"n","partitions":\#(Self.partitions),"url":"u"}"#
            )
            for (number, writer) in writers.enumerated() {
                file.add(#"{"e":"site","n":\#(number),"site":"\#(writer.site)"}"#)
            }
        }
        for file in read {
            for stream in streams {
                file.add(
                    #"{"e":"subscribed","ms":3,"stream":"\#(stream.name)","epoch":"\#(Self.epoch)","#
                        + #""partition":\#(stream.partition),"first":-1,"head":-1,"after":-1}"#
                )
            }
        }
    }

    func write(_ events: Int) throws {
        var random = SeededGenerator(seed: 1)
        for _ in 0..<events { publish(Int(random.next() % UInt64(Self.sites))) }
        for number in writers.indices { ack(number) }
        for number in streams.indices { push(number) }
        ms += 10_000
        for file in read {
            for stream in streams {
                file.add(
                    #"{"e":"reached","ms":\#(ms),"stream":"\#(stream.name)","epoch":"\#(Self.epoch)","#
                        + #""seq":\#(stream.proven)}"#
                )
            }
        }
        for file in published + read {
            file.add(#"{"e":"end","ms":\#(ms),"unacked":0}"#)
            try file.close()
        }
        try log.close()
    }

    /// Writes the next event of a site.
    private func publish(_ number: Int) {
        let place = number % Self.streams
        let partition = streams[place].partition
        let seq = heads[partition] + 1
        let op = writers[number].op
        heads[partition] = seq
        writers[number].op += 1
        writers[number].seqs.append(seq)
        makeValue(writers[number].site, op, base: seq - 1)

        log.bytes.append(#"{"epoch":""#)
        log.bytes.append(contentsOf: Self.epoch.description.utf8)
        log.bytes.append(#"","key":""#)
        log.bytes.append(contentsOf: streams[place].name.description.utf8)
        log.bytes.append(#"","partition":"#)
        log.bytes.append(integer: partition)
        log.bytes.append(#","seq":"#)
        log.bytes.append(integer: seq)
        log.bytes.append(#","value":"#)
        value.withUnsafeBytes { log.bytes.append(quoted: $0) }
        log.bytes.append("}\n")
        log.writeIfLarge()

        var hash = FNV1a()
        value.withUnsafeBytes { hash.add($0) }
        var events = streams[place].events
        streams[place].events = []
        if !events.isEmpty { events.append(UInt8(ascii: ",")) }
        events.append("[")
        events.append(integer: seq)
        events.append(",")
        events.append(integer: number)
        events.append(",")
        events.append(integer: op)
        events.append(#",""#)
        events.append(contentsOf: Hex64.text(hash.value).utf8)
        events.append(#""]"#)
        streams[place].events = events
        streams[place].count += 1
        if streams[place].count == Self.batch { push(place) }
        if writers[number].seqs.count == Self.batch { ack(number) }
    }

    private func makeValue(_ site: Site, _ op: Op, base: Seq) {
        value.removeAll(keepingCapacity: true)
        value.append(#"{"at":1795285748235,"base":"#)
        value.append(integer: base)
        value.append(#","fields":{"due":"#)
        value.append(integer: base)
        value.append(#","fill":"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"},"id":"#)
        value.append(quoted: site)
        value.append(#","model":"load","op":"#)
        value.append(integer: op)
        if op > 0 { value.append(#","ops":{"count":{"inc":1}}"#) }
        value.append(#","site":"#)
        value.append(quoted: site)
        if op > 0 { value.append(#","type":"update"}"#) } else { value.append(#","type":"insert"}"#) }
    }

    /// Writes the lines for a publish of a site's latest events, and for their acks.
    private func ack(_ number: Int) {
        let (seqs, op) = (writers[number].seqs, writers[number].op)
        guard !seqs.isEmpty else { return }
        writers[number].seqs.removeAll(keepingCapacity: true)
        let name = streams[number % Self.streams].name
        let first = op - Op(seqs.count)
        let acks = seqs.enumerated().map { "[\(number),\(first + Op($0.offset)),\($0.element)]" }
        ms += 1
        published[number % Self.publishers].add(
            #"{"e":"sent","ms":\#(ms),"stream":"\#(name)","site":\#(number),"ops":[\#(first),\#(op - 1)]}"# + "\n"
                + #"{"e":"ack","ms":\#(ms),"stream":"\#(name)","epoch":"\#(Self.epoch)","acks":["#
                + acks.joined(separator: ",") + "]}"
        )
    }

    /// Writes a frame with the new events of a stream to the histories of all readers.
    private func push(_ place: Int) {
        let (stream, head) = (streams[place], heads[streams[place].partition])
        var line = Array(
            #"{"e":"events","ms":\#(ms),"stream":"\#(stream.name)","from":\#(stream.proven + 1),"to":\#(head),"events":["#
                .utf8
        )
        line += stream.events
        line.append("]}\n")
        for file in read {
            file.bytes += line
            file.writeIfLarge()
        }
        streams[place].proven = head
        streams[place].events.removeAll(keepingCapacity: true)
        streams[place].count = 0
    }
}

/// A file that is written in large pieces.
private final class LineFile {
    var bytes: [UInt8] = []
    private let file: UnsafeMutablePointer<FILE>

    init(_ path: String) throws {
        guard let file = fopen(path, "w") else { throw BenchmarkError("\(path) cannot be created") }
        self.file = file
    }

    func add(_ line: String) {
        bytes.append(contentsOf: line.utf8)
        bytes.append(UInt8(ascii: "\n"))
        writeIfLarge()
    }

    func writeIfLarge() {
        guard bytes.count > 1 << 20 else { return }
        fwrite(bytes, 1, bytes.count, file)
        bytes.removeAll(keepingCapacity: true)
    }

    func close() throws {
        fwrite(bytes, 1, bytes.count, file)
        guard fclose(file) == 0 else { throw BenchmarkError("a history cannot be written") }
    }
}
