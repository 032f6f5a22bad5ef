import ReelCheck
import ReelClient
import ReelCore

@testable import ReelGateway

/// The statements of all parties in a run, which are compared with the log.
struct Evidence {
    /// An event that an app has published successfully.
    struct Promise {
        var stream: StreamName
        var device: String
        /// True after the device was restored from a backup: the event may be lost with the store, or come twice.
        var isShaky = false
        /// True if the store was deleted before the event was settled, so that the event may be lost with it.
        var mayBeLost = false
        var outcome: PublishOutcome?
    }

    struct Ack {
        var stream: StreamName
        var seq: Seq
        var site: Site
        var op: Op
        var by: String
    }

    struct Shown: Hashable {
        /// The number of the log.
        var log: Int
        var stream: StreamName
        var seq: Seq
    }

    var promises: [String: Promise] = [:]
    /// The number of letters that devices have typed.
    var letters: UInt32 = 0
    /// The letters that a device has typed since it wrote a text as a whole, by device and text.
    var typed: [String: [String]] = [:]
    /// The letters that a device has then replaced by a whole text. Before they were sent, both can be one event.
    var replaced: Set<String> = []
    /// The devices that have given their store to another user.
    var renamed: Set<String> = []
    /// The streams of which an operator has retired sites.
    var retired: Set<StreamName> = []
    /// The retired streams whose horizon has passed the barrier, or may have.
    var forgetful: Set<StreamName> = []
    /// True once a device has begun again with an empty store. No device resends events of the lost
    /// store that had not reached the log.
    var hasLostStore = false
    var acks: [Ack] = []
    var shown: [Shown: (digest: UInt64, by: String)] = [:]
}

// Checks during the run.
extension World {
    func promised(_ token: String, _ stream: StreamName, by device: String) {
        evidence.promises[token] = Evidence.Promise(stream: stream, device: device)
    }

    /// A scalar that no other event types. Where typing is merged into one splice, each letter is still found.
    func newLetter() -> String {
        evidence.letters += 1
        return Unicode.Scalar(0xf_0000 + evidence.letters % 0xffff).map { String($0) } ?? ""
    }

    /// A device has typed a letter into a text.
    func typed(_ letter: String, into text: String) { evidence.typed[text, default: []].append(letter) }

    /// A device writes a text as a whole.
    func replaced(_ text: String) { evidence.replaced.formUnion(evidence.typed.removeValue(forKey: text) ?? []) }

    /// True if the scalar is such a letter.
    static func isLetter(_ scalar: Unicode.Scalar) -> Bool { (0xf_0000...0xf_ffff).contains(scalar.value) }

    func settled(_ token: String, _ outcome: PublishOutcome) { evidence.promises[token]?.outcome = outcome }

    func restored(_ device: String) {
        for (token, promise) in evidence.promises where promise.device == device {
            evidence.promises[token]?.isShaky = true
        }
    }

    /// Notes that the device has lost its store, with or without the app's intention.
    func lostStore(_ device: String) {
        evidence.hasLostStore = true
        for (token, promise) in evidence.promises where promise.device == device && promise.outcome == nil {
            evidence.promises[token]?.mayBeLost = true
        }
    }

    func observed(_ place: Evidence.Shown, _ digest: UInt64, by device: String) {
        if let known = evidence.shown[place], known.digest != digest {
            broken("\(device) and \(known.by) show \(place) differently")
        }
        evidence.shown[place] = (digest, device)
    }

    /// Checks a frame to a client. An ack must name the seq of exactly that event, and a range must contain
    /// every event that the log has there.
    func judge(_ text: [UInt8], of log: SimulatedLog, from gateway: String, to device: String) {
        guard let frame = try? text.withUnsafeBytes({ try ServerFrame($0) }) else {
            return broken("\(gateway) sent what is no frame: \(String(decoding: text, as: UTF8.self))")
        }
        trace(gateway, "tells \(device) \(String(decoding: text.prefix(300), as: UTF8.self))")
        switch frame.body {
        case .ack(let ack):
            let partition = ack.stream.partition(of: log.partitions.count)
            var last: [Site: Op] = [:]
            for acked in ack.acks {
                if let last = last.updateValue(acked.op, forKey: acked.site), last >= acked.op {
                    broken("\(gateway) acked op \(acked.op) behind op \(last), in one frame")
                }
                evidence.acks.append(
                    Evidence.Ack(
                        stream: ack.stream,
                        seq: acked.seq,
                        site: acked.site,
                        op: acked.op,
                        by: gateway
                    )
                )
                var event = ParsedEvent()
                let value =
                    log.records[partition].indices.contains(Int(acked.seq))
                    ? log.delivered(acked.seq, of: partition, in: ack.stream) : nil
                let isThere = value?.withUnsafeBytes { (try? event.parse($0)) != nil } ?? false
                guard isThere, event.site == acked.site, event.op == acked.op else {
                    return broken("\(gateway) acked op \(acked.op) at \(acked.seq), where it is not")
                }
            }
        case .events(let events): judge(events, of: log, from: gateway, to: device)
        default: break
        }
    }

    private func judge(_ events: ServerFrame.Events, of log: SimulatedLog, from gateway: String, to device: String) {
        let partition = events.stream.partition(of: log.partitions.count)
        guard events.from >= 0, events.to <= log.head(partition), events.to >= events.from - 1 else {
            return broken("\(gateway) proves \(events.from)…\(events.to), the log ends at \(log.head(partition))")
        }
        guard events.from <= events.to else { return }
        guard !log.isSeed(events.from, of: partition) else {
            return broken("\(gateway) proves \(events.from), where the state of the epoch before stands")
        }
        var rest = events.events[...]
        for seq in events.from...events.to {
            guard let value = log.delivered(seq, of: partition, in: events.stream) else { continue }
            guard let next = rest.popFirst(), next.seq == seq, next.value == value else {
                return broken(
                    "\(gateway) proves \(events.from)…\(events.to) of \(events.stream) to \(device) without \(seq)"
                )
            }
        }
        if let more = rest.first {
            broken("\(gateway) tells \(device) of \(more.seq), where \(events.stream) has nothing")
        }
    }
}

// Checks at the end of the run.
extension World {
    /// Reads the logs with the checker's own fold, and compares them with all statements.
    func judgeTheEnd() {
        var places: [String: [(seq: Seq, judgement: Judgement)]] = [:]
        var states: [Evidence.Shown: UInt64] = [:]
        var consumed: [String: Op] = [:]
        var passed: Set<String> = []
        for log in store.logs {
            for partition in log.records.indices { read(partition, of: log, &places, &states, &consumed, &passed) }
        }
        for (place, shown) in evidence.shown where states[place] != shown.digest {
            broken("\(shown.by) showed a state at \(place) that is not the log's")
        }
        judgePromises(places)
        for ack in evidence.acks where consumed["\(ack.stream) \(ack.site)"] ?? -1 < ack.op {
            // An ack only says that the event is in the log. If its site has ended, the device
            // moves the event to a new site.
            if passed.contains("\(ack.stream) \(ack.site)"), mayPass(ack.stream) { continue }
            broken("op \(ack.op), acked by \(ack.by) at \(ack.seq), was never consumed")
        }
    }

    /// True if the log may contain events of a site that are never consumed.
    private func mayPass(_ stream: StreamName) -> Bool {
        evidence.retired.contains(stream) || evidence.hasLostStore || !evidence.renamed.isEmpty
    }

    private func read(
        _ partition: Int,
        of log: SimulatedLog,
        _ places: inout [String: [(seq: Seq, judgement: Judgement)]],
        _ states: inout [Evidence.Shown: UInt64],
        _ consumed: inout [String: Op],
        _ passed: inout Set<String>
    ) {
        let streams = Set(evidence.shown.keys.map(\.stream)).filter {
            $0.partition(of: log.partitions.count) == partition
        }
        var fold = NaiveFold(epoch: log.epoch.description, partition: partition, of: log.partitions.count)
        func note(_ stream: StreamName, _ seq: Seq) {
            let place = Evidence.Shown(log: log.number, stream: stream, seq: seq)
            guard evidence.shown[place] != nil else { return }
            states[place] = UInt64(fold.digest(of: stream.description), radix: 16)
        }
        // This is the state of an unknown stream before its first record.
        for stream in streams { note(stream, -1) }
        for (seq, record) in log.records[partition].enumerated() {
            if let record {
                let judgement = fold.apply(seq: Int64(seq), key: record.key, value: record.value)
                guard let judgement else { continue }
                if judgement.isConsumed {
                    for token in tokens(in: record.value) { places[token, default: []].append((Seq(seq), judgement)) }
                }
                var event = ParsedEvent()
                if judgement.isConsumed || judgement.isPassed,
                    record.value.withUnsafeBytes({ (try? event.parse($0)) != nil })
                {
                    let site = "\(String(decoding: record.key, as: UTF8.self)) \(event.site)"
                    if judgement.isConsumed { consumed[site] = event.op } else { passed.insert(site) }
                }
            }
            for stream in streams { note(stream, Seq(seq)) }
        }
    }

    private func judgePromises(_ places: [String: [(seq: Seq, judgement: Judgement)]]) {
        for (token, promise) in evidence.promises.sorted(by: { $0.key < $1.key }) where !promise.isShaky {
            let found = places[token] ?? []
            switch promise.outcome {
            case nil where promise.mayBeLost:
                if found.count > 1 { broken("\(token) was lost with its store, and is at \(found.map(\.seq))") }
            case .unknown(let error):
                // The event was sent again, to a gateway with a lower limit. An earlier copy
                // may still have reached the log.
                if error.code != .tooLarge, !mayBeUnknown(promise) {
                    broken("\(token) is unknown, and nothing of its site was forgotten")
                }
                if found.count > 1 { broken("\(token) is unknown, and is at \(found.map(\.seq))") }
            case .failed, .superseded:
                if !found.isEmpty { broken("\(token) was refused or reduced, and is at \(found.map(\.seq))") }
            case _ where found.isEmpty && evidence.replaced.contains(token): break
            default:
                guard found.count == 1, let place = found.first else {
                    let told = promise.outcome.map { "told \($0)" } ?? "told nothing"
                    return broken("\(token) was promised and \(told), and was consumed at \(found.map(\.seq))")
                }
                switch promise.outcome {
                case .applied(let seq) where seq != place.seq || place.judgement != .applied,
                    .rejected(_, let seq) where seq != place.seq || place.judgement == .applied:
                    broken("\(token) was told \(promise.outcome.map { "\($0)" } ?? ""), and is \(place)")
                default: break
                }
            }
        }
    }

    /// True if the device cannot learn the outcome of an event, because the stream has forgotten its site, or
    /// the site belongs to another user.
    private func mayBeUnknown(_ promise: Evidence.Promise) -> Bool {
        evidence.renamed.contains(promise.device) || evidence.forgetful.contains(promise.stream)
            || evidence.retired.contains(promise.stream) && store.logs.count > 1
    }

    /// Returns the tokens of promised events in a record: `"tok:…:"`, and letters.
    func tokens(in value: [UInt8]) -> [String] {
        let text = String(decoding: value, as: UTF8.self)
        return text.split(separator: "\"").filter { $0.hasPrefix("tok:") }.map(String.init)
            + text.unicodeScalars.filter(Self.isLetter).map { String($0) }
    }
}

extension Judgement {
    fileprivate var isConsumed: Bool {
        switch self {
        case .applied, .rejected: true
        default: false
        }
    }

    /// True for an event that its site cannot bring into the state at this seq.
    fileprivate var isPassed: Bool {
        switch self {
        case .gap, .stale, .foreign: true
        default: false
        }
    }
}
