import TestSupport

@testable import ReelCheck

/// A generator of random valid runs. Gateways of publishers die, and the publishers resend. Readers lose their
/// connections, jump and fetch. The log also contains void records, empty seqs and barriers.
struct RandomRun {
    private(set) var run = RecordedRun()
    private var random: SeededNumbers
    private var streams: [String] = []
    private var publishers: [Publisher] = []
    private var readers: [Reader] = []
    private var now = 100

    private struct Publisher {
        let name: String
        let site: Int
        let stream: String
        var acked = -1
        var handedOver = -1
    }

    private struct Reader {
        let name: String
        /// The proven seq of each stream; nil without a subscription. `reached` is the seq up to which the reader has
        /// no gap.
        var proven: [String: Int?]
        var reached: [String: Int]
    }

    init(seed: UInt64) {
        random = SeededNumbers(seed)
        run.partitions = 1 + random.below(3)
        run.log = [[(key: String, value: String)?]](repeating: [], count: run.partitions)
        run.histories = [:]
        run.files = [:]
        streams = Array(["s", "t", "u"].prefix(1 + random.below(3)))
        for site in 0..<(1 + random.below(4)) {
            let name = "publisher-\(site)"
            publishers.append(Publisher(name: name, site: site, stream: random.pick(streams)))
            run.histories[name] = run.begin(name) + [run.connect(), run.siteLine(site)]
        }
        for number in 0..<(1 + random.below(3)) {
            let name = "reader-\(number)"
            let own = streams.filter { _ in random.oneIn(2) }
            readers.append(
                Reader(
                    name: name,
                    proven: Dictionary(uniqueKeysWithValues: own.map { ($0, nil) }),
                    reached: Dictionary(uniqueKeysWithValues: own.map { ($0, -1) })
                )
            )
            run.histories[name] = run.begin(name) + publishers.map { run.siteLine($0.site) } + [run.connect()]
        }
        for _ in 0..<(10 + random.below(60)) { step() }
        finish()
    }

    private mutating func say(_ name: String, _ line: String) {
        run.histories[name]?.append(line)
        now += 1
    }

    private func place(of stream: String) -> Int { partition(of: Array(stream.utf8), among: run.partitions) }

    private func head(of stream: String) -> Int { run.log[place(of: stream)].count - 1 }

    private mutating func step() {
        switch random.below(10) {
        case 0..<4: publish(random.below(publishers.count), mayFail: true)
        case 4: disturb()
        default: read(random.below(readers.count))
        }
    }

    /// Appends an empty seq, a barrier or a void record, as another writer could.
    private mutating func disturb() {
        let partition = random.below(run.partitions)
        switch random.below(4) {
        // An empty first seq would look like a trimmed log.
        case 0: if !run.log[partition].isEmpty { run.log[partition].append(nil) }
        case 1: run.log[partition].append(("~reel", #"{"fold":1,"type":"barrier"}"#))
        case 2: run.log[partition].append(("~other", "{}"))
        default: run.log[partition].append((streams[0], "no event"))
        }
    }

    // MARK: Publishers

    private mutating func publish(_ number: Int, mayFail: Bool) {
        let publisher = publishers[number]
        // At the end, the publisher resends all events without an ack.
        let most = max(publisher.acked + 1 + random.below(4), mayFail ? -1 : publisher.handedOver)
        let ops = (publisher.acked + 1)...most
        publishers[number].handedOver = max(publisher.handedOver, most)
        say(
            publisher.name,
            #"{"e":"sent","ms":\#(now),"stream":"\#(publisher.stream)","site":\#(publisher.site),"#
                + #""ops":[\#(ops.lowerBound),\#(ops.upperBound)]}"#
        )
        let fails = mayFail && random.oneIn(3)
        let written = fails ? ops.prefix(random.below(ops.count + 1)) : ops[...]
        let acked = fails ? written.prefix(random.below(written.count + 1)) : written
        let partition = place(of: publisher.stream)
        var acks: [String] = []
        for op in written {
            let seq = run.log[partition].count
            run.log[partition].append(
                (publisher.stream, RecordedRun.event(site: publisher.site, op: op, base: random.below(seq + 1) - 1))
            )
            if acked.contains(op) { acks.append("[\(publisher.site),\(op),\(seq)]") }
        }
        if !acks.isEmpty {
            publishers[number].acked = acked.last ?? publisher.acked
            say(
                publisher.name,
                #"{"e":"ack","ms":\#(now),"stream":"\#(publisher.stream)","epoch":"\#(RecordedRun.epoch)","#
                    + #""acks":[\#(acks.joined(separator: ","))]}"#
            )
        }
        if fails {
            say(publisher.name, #"{"e":"disconnect","ms":\#(now),"code":1006,"why":"gone"}"#)
            say(publisher.name, run.connect())
        }
    }

    // MARK: Readers

    private mutating func read(_ number: Int) {
        guard let stream = readers[number].proven.keys.sorted().randomElement(using: &random) else { return }
        let head = head(of: stream)
        guard let proven = readers[number].proven[stream] ?? nil else { return subscribe(number, stream) }
        switch random.below(12) {
        case 0:
            say(readers[number].name, #"{"e":"disconnect","ms":\#(now),"code":1006,"why":"gone"}"#)
            say(readers[number].name, run.connect())
            for stream in readers[number].proven.keys { readers[number].proven[stream] = .some(nil) }
        case 1:
            let name = readers[number].name
            say(name, #"{"e":"lagged","ms":\#(now),"stream":"\#(stream)","seq":\#(proven),"head":\#(head)}"#)
            readers[number].proven[stream] = .some(nil)
        case 2, 3: upto(number, place(of: stream))
        default:
            guard head > proven else { return }
            push(number, stream, to: proven + 1 + random.below(head - proven))
        }
    }

    private mutating func push(_ number: Int, _ stream: String, to: Int) {
        guard let proven = readers[number].proven[stream] ?? nil else { return }
        let frame = run.frame(stream, partition: place(of: stream), from: proven + 1, to: to, ms: now)
        say(readers[number].name, barriersAdded(frame, stream, proven + 1, to))
        prove(number, stream, to)
    }

    private mutating func prove(_ number: Int, _ stream: String, _ seq: Int) {
        if let reached = readers[number].reached[stream], let proven = readers[number].proven[stream] ?? nil,
            reached >= proven
        {
            readers[number].reached[stream] = max(reached, seq)
        }
        readers[number].proven[stream] = seq
    }

    /// Returns the frame with the barriers of its range added.
    private func barriersAdded(_ frame: String, _ stream: String, _ from: Int, _ to: Int) -> String {
        let partition = place(of: stream)
        guard from <= to else { return frame }
        var entries: [(Int, String)] = frame.matches(of: /\[(\d+),(-?\d+),(-?\d+),"[0-9a-f]+"\]/).compactMap { match in
            Int(match.1).map { ($0, String(match.0)) }
        }
        for seq in from...to where run.log[partition].indices.contains(seq) && run.log[partition][seq]?.key == "~reel" {
            entries.append((seq, #"[\#(seq),-1,-1,"\#(RecordedRun.hash(run.log[partition][seq]!.value))"]"#))
        }
        let head = frame.prefix(upTo: frame.firstRange(of: #""events":["#)!.upperBound)
        return head + entries.sorted { $0.0 < $1.0 }.map(\.1).joined(separator: ",") + "]}"
    }

    private mutating func upto(_ number: Int, _ partition: Int) {
        let own = readers[number].proven.filter { place(of: $0.key) == partition && $0.value != nil }
        guard let least = own.values.compactMap({ $0 }).min() else { return }
        var seq = least
        while seq + 1 < run.log[partition].count {
            let next = run.log[partition][seq + 1]
            let isDelivered = own.contains { stream, proven in
                guard let next, let proven, seq + 1 > proven else { return false }
                return next.key == "~reel" || next.key == stream && run.parts(next) != nil
            }
            if isDelivered { break }
            seq += 1
        }
        // On a connection, the seq of `upto` never decreases.
        guard seq >= own.values.compactMap({ $0 }).max() ?? -1 else { return }
        say(readers[number].name, #"{"e":"upto","ms":\#(now),"partition":\#(partition),"seq":\#(seq)}"#)
        for stream in own.keys { prove(number, stream, seq) }
    }

    private mutating func subscribe(_ number: Int, _ stream: String) {
        let name = readers[number].name
        let head = head(of: stream)
        let reached = readers[number].reached[stream] ?? -1
        let isJump =
            random.oneIn(2) && run.histories[name]!.contains { $0.contains(#""subscribed""#) && $0.contains(stream) }
        let after = isJump ? head : reached
        say(name, run.subscribed(stream, partition: place(of: stream), head: head, after: after))
        readers[number].proven[stream] = after
        guard after > reached else { return }
        let place = place(of: stream)
        let frame = run.frame(stream, partition: place, from: reached + 1, to: after, fetched: true, ms: now)
        say(name, barriersAdded(frame, stream, reached + 1, after))
        readers[number].reached[stream] = after
    }

    // MARK: The end

    private mutating func finish() {
        for number in publishers.indices { publish(number, mayFail: false) }
        // A dump does not show an empty seq at the end.
        for partition in run.log.indices where run.log[partition].last ?? ("", "") == nil {
            run.log[partition].append(("~other", "{}"))
        }
        for number in readers.indices {
            for stream in readers[number].proven.keys.sorted() {
                if readers[number].proven[stream] == .some(nil) { subscribe(number, stream) }
                if let proven = readers[number].proven[stream] ?? nil, proven < head(of: stream) {
                    push(number, stream, to: head(of: stream))
                }
                let name = readers[number].name
                say(
                    name,
                    #"{"e":"reached","ms":\#(now + 9_000),"stream":"\#(stream)","epoch":"\#(RecordedRun.epoch)","#
                        + #""seq":\#(readers[number].reached[stream]!)}"#
                )
            }
        }
        for name in run.histories.keys.sorted() { say(name, #"{"e":"end","ms":\#(now + 9_000),"unacked":0}"#) }
        run.histories["driver"] = run.begin("driver", kind: "driver")
        for stream in streams where head(of: stream) >= 0 {
            let seq = random.below(head(of: stream) + 1)
            let state = run.state(stream, seq: seq)
            run.histories["driver"]?.append(state)
            run.files["\(stream).snapshot.jsonl"] = run.snapshot(stream, seq: head(of: stream))
            run.files["\(stream)-\(seq).snapshot.jsonl"] = run.snapshot(stream, seq: head(of: stream), after: seq)
        }
    }
}
