/// The kind of a record of the log, with its content.
enum Record: Sendable {
    case event(Event)
    /// Valid only in the sequence of seeds at the beginning of the partition.
    case seed(Seed)
    case barrier(Barrier)
    /// A barrier that this reader does not know. No reader may continue after it.
    case unknownBarrier
    /// A record without effect for any reader. The reason is for people to read.
    case void(String)
}

enum Barrier: Sendable, Equatable {
    /// Fold version 1 is valid from here on.
    case fold
    /// The epoch ends here; readers continue in the given epoch.
    case end(Text)
    /// The end of the seeds of a new epoch.
    case open
    /// Ends the sites of the stream that have consumed no event above the seq `before`.
    case retire(before: Int64, stream: Text)
}

/// A line of the old epoch's state, without seqs.
enum Seed: Sendable {
    case site(Site, by: Text?, op: Int64, ended: Bool)
    case object(ObjectName, fields: [(name: Text, value: JSON, site: Site)])
    case tombstone(ObjectName)
    /// The fact that sites of the stream were retired.
    case retired
}

/// The constants of fold version 1.
enum Limit {
    static let recordBytes = 1 << 20
    static let objectFields = 1_024
    static let objectBytes = 768 << 10
    static let objectHistory = 1 << 20
    static let run = 16
    static let sites = 100_000
    static let lostOfSite = 16
    static let lostOfStream = 1_024
    static let eventDepth = 32
    static let seedDepth = 40
    static let eventsPerMark = 4_096
    static let marks = 16
}

extension Record {
    /// Classifies a record of `partition`, one of `partitions`. This does not consider the record's position: a seed
    /// may still be void there.
    init(key: [UInt8], value: [UInt8], in partition: Int, of partitions: Int) {
        do throws(Fault) {
            if key == Array("~reel".utf8) {
                self = try .barrier(value)
                return
            }
            guard value.count <= Limit.recordBytes else { throw Fault("larger than 1 MiB") }
            let name = Text(key)
            guard name.isStreamName else { throw Fault("the key names no stream") }
            guard ReelCheck.partition(of: key, among: partitions) == partition else {
                throw Fault("in a wrong partition")
            }
            let json = try JSON(canonical: value, depth: Limit.seedDepth)
            if json.type == "seed" {
                self = .seed(try Seed(json))
            } else {
                guard json.depth <= Limit.eventDepth else { throw Fault("too deep") }
                self = .event(try Event(json))
            }
        } catch {
            self = .void(error.reason)
        }
    }

    /// A known barrier has exactly the known bytes. Any other object of that type, in any form, may be a barrier of a
    /// later version.
    private static func barrier(_ value: [UInt8]) throws(Fault) -> Record {
        let json = try JSON(reading: value, depth: Limit.seedDepth)
        guard json.type == "barrier" else { throw Fault("no barrier") }
        guard json.canonical == value, let members = json.members, members.count == 2 else { return .unknownBarrier }
        switch (members[0].name.string, members[0].value) {
        case ("fold", .number(1)): return .barrier(.fold)
        case ("end", .text(let epoch)) where epoch.isEpoch: return .barrier(.end(epoch))
        case ("open", .bool(true)): return .barrier(.open)
        case ("retire", let what): return retire(what).map(Record.barrier) ?? .unknownBarrier
        default: return .unknownBarrier
        }
    }

    private static func retire(_ json: JSON) -> Barrier? {
        guard let members = json.members, members.count == 2, members[0].name == Text("before"),
            let before = members[0].value.integer, before >= 0,
            members[1].name == Text("stream"), let stream = members[1].value.text, stream.isStreamName
        else { return nil }
        return .retire(before: before, stream: stream)
    }
}

extension JSON {
    fileprivate var type: String? {
        members?.first { $0.name == Text("type") }?.value.text?.string
    }
}

extension Seed {
    fileprivate init(_ json: JSON) throws(Fault) {
        var members = try Members(json)
        _ = try members.take("type")
        var line = try Members(members.take("line"))
        try members.end()
        if line.has("site") {
            let end = try line.integer("end", from: -1)
            self = .site(
                try line.site("site"),
                by: try line.optionalName("by"),
                op: try line.integer("op", from: 0),
                ended: end != -1
            )
        } else if line.has("object") {
            guard line.has("fields") else { throw Fault("an object without fields") }
            self = .object(try line.object("object"), fields: try Self.fields(line.named("fields")))
        } else if line.has("retired") {
            guard case .bool(true) = try line.take("retired") else { throw Fault("retired is not true") }
            self = .retired
        } else {
            self = .tombstone(try line.object("deleted"))
        }
        try line.end()
    }

    private static func fields(
        _ members: [(name: Text, value: JSON)]
    ) throws(Fault) -> [(name: Text, value: JSON, site: Site)] {
        let fields = try members.map { (name, field) throws(Fault) in
            guard let pair = field.array, pair.count == 2, !pair[0].isNull, let site = pair[1].text.flatMap(Site.init)
            else { throw Fault("a seed's field is no [value, site]") }
            return (name: name, value: pair[0], site: site)
        }
        let visible = JSON.object(fields.map { JSON.Member($0.name, $0.value) })
        guard fields.count <= Limit.objectFields, visible.canonical.count <= Limit.objectBytes else {
            throw Fault("an object beyond its limits")
        }
        return fields
    }
}

extension Members {
    /// Reads `[model, id]`.
    mutating func object(_ name: String) throws(Fault) -> ObjectName {
        guard let pair = try take(name).array, pair.count == 2, let model = pair[0].text, model.isName,
            let id = pair[1].text, id.isName
        else { throw Fault("\(name) is no [model, id]") }
        return ObjectName(model: model, id: id)
    }
}
