@testable import ReelCore

/// A stream that a test writes by hand. Each call creates the next event of a site and folds it at the next seq.
struct FoldScript {
    var fold = Fold(stream: FoldHistory.stream, partition: 0, epoch: FoldHistory.epoch)
    private var ops: [Int: Op] = [:]

    static func site(_ number: Int) -> Site { Site(high: 0x6f1c, low: UInt64(number)) }

    /// The seq of the next event.
    var next: Seq { fold.seq + 1 }

    /// Returns one change as JSON. `fields`, `guards` (the member `if`) and `ops` are JSON values.
    static func part(_ type: String, id: String = "1", fields: String? = nil, guards: String? = nil, ops: String? = nil)
        -> String
    {
        var members: [String] = []
        if let fields { members.append("\"fields\":\(fields)") }
        members.append("\"id\":\"\(id)\"")
        if let guards { members.append("\"if\":\(guards)") }
        members.append("\"model\":\"m\"")
        if let ops { members.append("\"ops\":\(ops)") }
        members.append("\"type\":\"\(type)\"")
        return "{" + members.joined(separator: ",") + "}"
    }

    /// Folds a batch of the parts. A single part is a batch too.
    @discardableResult
    mutating func batch(_ parts: [String], _ site: Int = 1, base: Seq? = nil) -> Outcome {
        let events = "\"events\":[\(parts.joined(separator: ","))],"
        let back = "\"type\":\"batch\"}"
        return send(site, op: nil, base: base, by: nil, last: false, front: events, middle: "", back: back)
    }

    @discardableResult
    mutating func noop(
        _ site: Int = 1,
        op: Op? = nil,
        base: Seq? = nil,
        by: String? = nil,
        last: Bool = false
    ) -> Outcome {
        send(site, op: op, base: base, by: by, last: last, front: "", middle: "", back: "\"type\":\"noop\"}")
    }

    /// Folds an event with one change.
    @discardableResult
    mutating func event(
        _ type: String,
        _ site: Int = 1,
        op: Op? = nil,
        base: Seq? = nil,
        by: String? = nil,
        last: Bool = false,
        id: String = "1",
        fields: String? = nil,
        guards: String? = nil,
        ops: String? = nil
    ) -> Outcome {
        var front = fields.map { "\"fields\":\($0)," } ?? ""
        front += "\"id\":\"\(id)\","
        if let guards { front += "\"if\":\(guards)," }
        let middle = "\"model\":\"m\","
        return send(
            site,
            op: op,
            base: base,
            by: by,
            last: last,
            front: front,
            middle: middle,
            ops: ops,
            back: "\"type\":\"\(type)\"}"
        )
    }

    private mutating func send(
        _ site: Int,
        op: Op?,
        base: Seq?,
        by: String?,
        last: Bool,
        front: String,
        middle: String,
        ops: String? = nil,
        back: String
    ) -> Outcome {
        let number = op ?? self.ops[site, default: 0]
        var text = "{\"base\":\(base ?? fold.seq),"
        if let by { text += "\"by\":\"\(by)\"," }
        text += front
        if last { text += "\"last\":true," }
        text += middle + "\"op\":\(number),"
        if let ops { text += "\"ops\":\(ops)," }
        text += "\"site\":\"\(Self.site(site))\"," + back
        let outcome = fold.fold(text, seq: next)
        switch outcome {
        case .applied, .rejected: self.ops[site] = number + 1
        default: break
        }
        return outcome
    }

    /// Returns the value of a field of an object of model "m".
    func value(_ name: String, id: String = "1") -> String? {
        fold.object(model: "m", id: id)?.value(name).map { String(decoding: $0, as: UTF8.self) }
    }

    /// Returns the marks of a site's lost texts by field. The key `*` stands for all fields.
    func lost(_ site: Int) -> [String: Seq] {
        guard let lost = fold.site(Self.site(site))?.lost else { return [:] }
        let fields = lost.fields.map { ("\($0)", $0.seq) }
        let all = lost.all == .none ? [] : [("*", lost.all)]
        return Dictionary(uniqueKeysWithValues: fields + all)
    }

    /// Sets the 16 marks of the fold so that its horizon is `seq` and the next mark is far away.
    mutating func setHorizon(_ seq: Seq) {
        fold.marks = (seq..<seq + 16).map { $0 }
        fold.consumed = 16 * 4_096 + 1
    }
}
