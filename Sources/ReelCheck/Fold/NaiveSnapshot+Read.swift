extension NaiveSnapshot {
    /// Reads the lines of a snapshot or a delta. Checks everything that depends on the lines alone: canonical form,
    /// order, site numbers, the count, and that the runs of a text spell the text.
    public init(_ bytes: [UInt8]) throws(Fault) {
        guard bytes.last == UInt8(ascii: "\n") else { throw Fault("the last line has no end") }
        let lines = try bytes.dropLast().split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            .map { (line) throws(Fault) in try JSON(canonical: Array(line), depth: Limit.seedDepth) }
        guard lines.count >= 2 else { throw Fault("no first and last line") }

        var head = try Members(lines[0])
        guard try head.integer("fold", from: 0) == 1 else { throw Fault("an unknown fold version") }
        let after = try head.integer("after", from: -1)
        var state = StreamState()
        state.consumed = Int(try head.integer("consumed", from: 0))
        state.marks = try head.array("marks").map { (mark) throws(Fault) in
            guard let seq = mark.integer, seq >= 0 else { throw Fault("a mark that is no seq") }
            return seq
        }
        if head.has("retired") { state.retired = try head.integer("retired", from: 0) }
        let sites = try head.array("sites").map { (site) throws(Fault) in
            guard let site = site.text.flatMap(Site.init) else { throw Fault("a site that is no UUID") }
            return site
        }
        guard zip(sites, sites.dropFirst()).allSatisfy(<) else { throw Fault("the sites are not sorted") }
        self.init(
            stream: try head.text("stream"),
            epoch: try head.text("epoch"),
            partition: Int(try head.integer("partition", from: 0)),
            seq: try head.integer("seq", from: -1),
            next: head.has("next") ? try head.text("next") : nil,
            state: state
        )
        self.after = after
        try head.end()
        guard state.retired <= seq else { throw Fault("sites retired at a seq that is not folded yet") }

        var end = try Members(lines[lines.count - 1])
        guard try end.integer("count", from: 0) == lines.count - 2 else { throw Fault("a wrong count") }
        declaredDigest = try end.text("digest").string
        guard case .bool(true) = try end.take("end") else { throw Fault("the last line is not the end") }
        try end.end()

        var place = Place(rank: 0, first: Text(""), second: Text(""))
        for line in lines[1..<(lines.count - 1)] {
            let next = try take(line, sites)
            guard place < next else { throw Fault("lines out of order") }
            place = next
        }
    }

    /// The sort key of a line among the lines.
    private struct Place: Comparable {
        let rank: Int
        let first: Text
        let second: Text

        static func < (a: Place, b: Place) -> Bool {
            (a.rank, a.first, a.second) < (b.rank, b.first, b.second)
        }
    }

    private mutating func take(_ json: JSON, _ sites: [Site]) throws(Fault) -> Place {
        var line = try Members(json)
        let place: Place
        if line.has("site") {
            let name = try line.take("site").site(in: sites)
            let site = SiteState(
                by: try line.optionalName("by"),
                op: try line.integer("op", from: 0),
                seq: try line.integer("seq", from: 0),
                r: try line.integer("r", from: -1),
                lost: try line.lost(above: state.horizon),
                end: try line.integer("end", from: -1)
            )
            guard site.end == -1 || site.end >= site.seq else { throw Fault("a site that wrote after its end") }
            state.sites[name] = site
            place = Place(rank: 1, first: name.text, second: Text(""))
        } else if line.has("object") {
            let name = try line.object("object")
            var object = Object(seq: try line.integer("seq", from: 0))
            for (fieldName, field) in try line.named("fields") {
                object.fields[fieldName] = try Field(field, sites, horizon: state.horizon)
            }
            state.objects[name] = object
            place = Place(rank: 2, first: name.model, second: name.id)
        } else {
            let name = try line.object("deleted")
            state.tombstones[name] = try line.integer("seq", from: 0)
            place = Place(rank: 3, first: name.model, second: name.id)
        }
        try line.end()
        return place
    }
}

extension Members {
    /// Reads `"lost":[[model,id,field,seq],…]`, which is absent if it is empty.
    fileprivate mutating func lost(above horizon: Int64) throws(Fault) -> [FieldName: Int64] {
        guard has("lost") else { return [:] }
        let entries = try array("lost").map { (entry) throws(Fault) in
            guard let entry = entry.array, entry.count == 4, let model = entry[0].text, model.isName,
                let id = entry[1].text, id.isName, let field = entry[2].text, field.isName,
                let seq = entry[3].integer, seq > horizon
            else { throw Fault("no [model, id, field, seq] with a seq above the horizon") }
            return (name: FieldName(ObjectName(model: model, id: id), field), seq: seq)
        }
        guard (1...Limit.lostOfSite).contains(entries.count) else { throw Fault("\(entries.count) rejected texts") }
        guard zip(entries, entries.dropFirst()).allSatisfy({ $0.name < $1.name }) else {
            throw Fault("the rejected texts are not sorted")
        }
        return Dictionary(uniqueKeysWithValues: entries.map { ($0.name, $0.seq) })
    }
}

extension Field {
    /// Reads `[value, seq, site]`, `[value, seq, site, runs]` or `[value, seq, site, runs, [w, site]]`.
    fileprivate init(_ json: JSON, _ sites: [Site], horizon: Int64) throws(Fault) {
        guard let line = json.array, (3...5).contains(line.count), !line[0].isNull else { throw Fault("no field") }
        let writer = try JSON.array([line[1], line[2]]).stamp(sites)
        guard line.count > 3 else {
            self.init(line[0], by: writer)
            return
        }
        guard let runs = line[3].array else { throw Fault("runs that are no array") }
        var text = SharedText()
        for run in runs {
            guard let run = run.array, (3...4).contains(run.count), let words = run[0].text,
                let deleters = run.count > 3 ? run[3].array : []
            else { throw Fault("no run") }
            text.append(
                words,
                by: try JSON.array([run[1], run[2]]).stamp(sites),
                deleters: try deleters.map { (deleter) throws(Fault) in try deleter.stamp(sites) }
            )
        }
        guard line[0].text == text.visible else { throw Fault("the runs do not make the text") }
        guard writer.seq > horizon else { throw Fault("runs of a text below the horizon") }
        let plainWriter = line.count > 4 ? try line[4].stamp(sites) : nil
        if let plainWriter, plainWriter.seq <= horizon { throw Fault("a plain write below the horizon") }
        self.init(text, by: writer, plainWriter: plainWriter)
    }
}

extension JSON {
    /// Returns the site with this number.
    fileprivate func site(in sites: [Site]) throws(Fault) -> Site {
        guard let number = integer, sites.indices.contains(Int(number)) else {
            throw Fault("a site that is not listed")
        }
        return sites[Int(number)]
    }

    /// Reads `[seq, site]`.
    fileprivate func stamp(_ sites: [Site]) throws(Fault) -> Stamp {
        guard let pair = array, pair.count == 2, let seq = pair[0].integer, seq >= -1 else {
            throw Fault("no [seq, site]")
        }
        return Stamp(seq: seq, site: try pair[1].site(in: sites))
    }
}
