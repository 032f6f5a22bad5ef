/// The state of a stream as of a seq, and its serialization.
public struct NaiveSnapshot: Sendable {
    let stream: Text
    let epoch: Text
    let partition: Int
    /// The last seq of the partition that the state includes.
    public let seq: Int64
    /// The epoch that follows, if this one has ended.
    let next: Text?
    var state: StreamState
    /// −1 for a whole snapshot; for a delta, the seq after which the changes are included.
    public var after: Int64 = -1
    /// The digest in the last line. It is that of the whole state, even in a delta.
    public var declaredDigest: String?

    init(stream: Text, epoch: Text, partition: Int, seq: Int64, next: Text?, state: StreamState) {
        self.stream = stream
        self.epoch = epoch
        self.partition = partition
        self.seq = seq
        self.next = next
        self.state = state
    }

    /// The digest of this state, computed on each call.
    public var digest: String { state.digest }

    /// Returns the state after applying a delta; nil if the delta does not fit.
    public func advanced(by delta: NaiveSnapshot) -> NaiveSnapshot? {
        guard after == -1, delta.stream == stream, delta.epoch == epoch, (delta.after...delta.seq).contains(seq) else {
            return nil
        }
        var state = state
        for (name, object) in delta.state.objects {
            state.objects[name] = object
            state.tombstones[name] = nil
        }
        for (name, seq) in delta.state.tombstones {
            state.objects[name] = nil
            state.tombstones[name] = seq
        }
        state.sites.merge(delta.state.sites) { $1 }
        state.consumed = delta.state.consumed
        state.marks = delta.state.marks
        state.retired = delta.state.retired
        state.forget()
        return NaiveSnapshot(
            stream: stream,
            epoch: epoch,
            partition: partition,
            seq: delta.seq,
            next: delta.next,
            state: state
        )
    }

    /// The snapshot without everything in which two correct folds may differ. These are the authors of text changes at
    /// or below the horizon, elements that no author can see any more, and the boundaries of runs.
    public var normalForm: [UInt8] {
        var normal = self
        for (name, object) in state.objects {
            for (fieldName, field) in object.fields {
                guard case .shared(let text) = field.content else { continue }
                normal.state.objects[name]?.fields[fieldName]?.content = .shared(text.normalForm(above: state.horizon))
            }
        }
        return normal.lines(after: -1)
    }
}

// MARK: - Writing

extension NaiveSnapshot {
    /// Returns the lines, each with a line feed; with `after` ≥ 0 those of a delta.
    func lines(after: Int64) -> [UInt8] {
        // Sites are written as indices into a list of the needed sites. The first pass only finds those.
        var needed: Set<Site> = []
        _ = body(after: after) { site in
            needed.insert(site)
            return .null
        }
        let sites = needed.sorted()
        let numbers = Dictionary(uniqueKeysWithValues: zip(sites, Int64(0)...))
        let body = body(after: after) { .integer(numbers[$0] ?? 0) }.map(\.canonical)

        var head: [JSON.Member] = [
            .init("after", .integer(after)), .init("consumed", .integer(Int64(state.consumed))),
            .init("epoch", .text(epoch)), .init("fold", .integer(1)),
            .init("marks", .array(state.marks.map(JSON.integer))),
            .init("partition", .integer(Int64(partition))), .init("seq", .integer(seq)),
            .init("sites", .array(sites.map { .text($0.text) })), .init("stream", .text(stream)),
        ]
        if let next { head.append(.init("next", .text(next))) }
        if state.retired != -1 { head.append(.init("retired", .integer(state.retired))) }
        let end: [JSON.Member] = [
            .init("count", .integer(Int64(body.count))), .init("digest", .string(digest)), .init("end", .bool(true)),
        ]
        let all = [JSON.object(head).canonical] + body + [JSON.object(end).canonical]
        return all.flatMap { $0 + [UInt8(ascii: "\n")] }
    }

    /// Returns the lines between head and end: sites by UUID, then objects, then tombstones, both by model and id.
    private func body(after: Int64, number: (Site) -> JSON) -> [JSON] {
        let sites = state.sites.sorted { $0.key < $1.key }.filter { max($0.value.seq, $0.value.end) > after }
            .map { name, site in
                JSON.object(
                    [
                        .init("end", .integer(site.end)), .init("op", .integer(site.op)), .init("r", .integer(site.r)),
                        .init("seq", .integer(site.seq)), .init("site", number(name)),
                    ] + (site.by.map { [.init("by", .text($0))] } ?? []) + site.lostMember
                )
            }
        let objects = state.objects.sorted { $0.key < $1.key }.filter { $0.value.seq > after }
            .map { name, object in
                let fields = object.fields.map { JSON.Member($0.key, $0.value.line(number, horizon: state.horizon)) }
                return JSON.object([
                    .init("fields", .object(fields)), .init("object", name.json), .init("seq", .integer(object.seq)),
                ])
            }
        let tombstones = state.tombstones.sorted { $0.key < $1.key }.filter { $0.value > after }
            .map { JSON.object([.init("deleted", $0.key.json), .init("seq", .integer($0.value))]) }
        return sites + objects + tombstones
    }
}

extension SiteState {
    /// The member `"lost":[[model,id,field,seq],…]`, sorted by bytes; empty if no text is lost.
    fileprivate var lostMember: [JSON.Member] {
        let lines = lost.sorted { $0.key < $1.key }.map { name, seq in
            JSON.array([.text(name.object.model), .text(name.object.id), .text(name.field), .integer(seq)])
        }
        return lines.isEmpty ? [] : [.init("lost", .array(lines))]
    }
}

extension ObjectName {
    fileprivate var json: JSON { .array([.text(model), .text(id)]) }
}

extension Field {
    /// Returns `[value, seq, site]`. A shared text adds its runs, and its last plain writer if that is above the
    /// horizon. (A text with its last splice at or below the horizon is not shared; see `StreamState.forget`.)
    fileprivate func line(_ number: (Site) -> JSON, horizon: Int64) -> JSON {
        var line: [JSON] = [value] + writer.json(number)
        if case .shared(let text) = content {
            line.append(.array(text.runs.map { $0.line(number) }))
            if let plainWriter, plainWriter.seq > horizon { line.append(.array(plainWriter.json(number))) }
        }
        return .array(line)
    }
}

extension Stamp {
    fileprivate func json(_ number: (Site) -> JSON) -> [JSON] { [.integer(seq), number(site)] }
}

/// Adjacent elements with the same inserter and the same deleters.
private struct Run {
    var text: String
    let inserter: Stamp
    let deleters: [Stamp]

    func line(_ number: (Site) -> JSON) -> JSON {
        let line = [JSON.string(text)] + inserter.json(number)
        return .array(deleters.isEmpty ? line : line + [.array(deleters.map { .array($0.json(number)) })])
    }
}

extension SharedText {
    fileprivate var runs: [Run] {
        var runs: [Run] = []
        for element in elements {
            let deleters = deleters(of: element)
            if let last = runs.last, last.inserter == element.inserter, last.deleters == deleters {
                runs[runs.count - 1].text.unicodeScalars.append(element.scalar)
            } else {
                runs.append(Run(text: String(element.scalar), inserter: element.inserter, deleters: deleters))
            }
        }
        return runs
    }
}
