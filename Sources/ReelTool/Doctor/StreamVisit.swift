import ReelCore
import ReelNet

/// The requests of `reel doctor` about one stream.
struct StreamVisit {
    let probe: NodeProbe
    let stream: StreamName

    /// The reason why a node gave no usable answer.
    struct Failure: Error, Equatable {
        /// The code of the answer, or the code for its mistake; nil if the node does not answer.
        var code: ErrorCode?
        var message: String
    }

    /// The largest number of pages, of 10,000 events each, that are searched for events of a site.
    private static let pagesMax = 20

    /// Asks a gateway for the head and events of the stream, and all snapshot nodes for its state.
    ///
    /// - Parameters:
    ///   - gateway: the gateway to ask; nil if none answers.
    ///   - snapshots: the snapshot nodes to ask.
    ///   - site: the site to check; nil for none.
    ///   - isPartial: true if there can be other snapshot nodes.
    func report(
        gateway: NodeAddress?,
        snapshots: [NodeAddress],
        site: Site?,
        isPartial: Bool = false
    ) async -> StreamReport {
        var report = StreamReport(
            stream: stream,
            head: .failure(Failure(code: nil, message: "no gateway answers")),
            states: [],
            isPartial: isPartial,
            site: site
        )
        if let gateway { report.head = await answer("head", of: gateway) }
        for node in snapshots { report.states.append(StreamReport.State(node: node, fold: await fold(of: node))) }
        report.disagreements = await disagreements(report.states)
        guard let site else { return report }
        switch (report.head, gateway) {
        case (.success(let head), let gateway?):
            // The log has no answer for seqs below its first one.
            let from = max(0, head.first, report.furthest?.site(site)?.seq ?? 0)
            switch await events(of: site, from: from, at: gateway) {
            case .success(let events): report.siteEvents = events
            case .failure(let failure): report.siteFailure = failure
            }
        case (.failure(let failure), _): report.siteFailure = failure
        case (.success, nil): break
        }
        return report
    }

    private func get(_ rest: String, of node: NodeAddress) async -> Result<[UInt8], Failure> {
        switch await probe.get("/v1/streams/\(stream)/\(rest)", of: node) {
        case .failure(let error): return .failure(Failure(code: nil, message: error.message))
        case .success(let response) where response.status == 200: return .success(response.body)
        case .success(let response):
            let refusal = Refusal(response)
            return .failure(Failure(code: refusal.code, message: refusal.message))
        }
    }

    private func answer(_ rest: String, of node: NodeAddress) async -> Result<StreamAnswer, Failure> {
        await get(rest, of: node).flatMap { body in
            do throws(CommandError) {
                return .success(try StreamAnswer(body))
            } catch {
                return .failure(Failure(code: .badFrame, message: error.message))
            }
        }
    }

    // MARK: State

    private func fold(of node: NodeAddress) async -> Result<Fold, Failure> {
        await probe.state("/v1/streams/\(stream)/snapshot", of: node, into: SnapshotReader()).mapError { failure in
            switch failure {
            case .silent(let error): Failure(code: nil, message: error.message)
            case .refused(let refusal): Failure(code: refusal.code, message: refusal.message)
            case .wrong(let error): Failure(code: error.code, message: error.message)
            }
        }
    }

    /// Compares the states in the order of their seqs. Two states of one seq must have equal digests. Otherwise the
    /// delta of the later node is applied to the earlier state, and the result must have the digest of the delta.
    private func disagreements(_ states: [StreamReport.State]) async -> [String] {
        var known = states.compactMap { state in (try? state.fold.get()).map { (node: state.node, fold: $0) } }
        known.sort { $0.fold.seq < $1.fold.seq }
        var found: [String] = []
        for (a, b) in zip(known, known.dropFirst()) where a.fold.seq >= 0 && a.fold.epoch == b.fold.epoch {
            if a.fold.seq == b.fold.seq {
                var (x, y) = (a.fold, b.fold)
                if x.digest() != y.digest() {
                    found.append(
                        "at seq \(x.seq) \(a.node) has the digest \(Hex64.text(x.digest())) and \(b.node) "
                            + Hex64.text(y.digest())
                    )
                }
            } else if case .failure(.wrong(let error)) = await probe.state(
                "/v1/streams/\(stream)/delta?after=\(a.fold.seq)&epoch=\(a.fold.epoch)",
                of: b.node,
                into: SnapshotReader(onto: a.fold)
            ) {
                found.append("the delta of \(b.node) does not fit the state of \(a.node): \(error.message)")
            }
        }
        return found
    }

    // MARK: Events

    private func events(
        of site: Site,
        from: Seq,
        at gateway: NodeAddress
    ) async -> Result<[StreamReport.SiteEvent], Failure> {
        var (after, found) = (from - 1, [StreamReport.SiteEvent]())
        for _ in 0..<Self.pagesMax {
            let page: StreamAnswer
            switch await answer("events?after=\(after)&limit=10000", of: gateway) {
            case .success(let answer): page = answer
            case .failure(let failure): return .failure(failure)
            }
            for event in page.events {
                let parsed = event.bytes.withUnsafeBytes { StreamReport.SiteEvent($0, seq: event.seq, of: site) }
                if let parsed { found.append(parsed) }
            }
            guard page.to > after, page.to < page.head else { break }
            after = page.to
        }
        return .success(found)
    }
}

extension StreamReport.SiteEvent {
    /// Parses an event; nil for an event of another site.
    fileprivate init?(_ event: Bytes, seq: Seq, of site: Site) {
        var (author, op, at) = ("", Op?.none, Int64?.none)
        var reader = JSONReader(event, levels: ClientFrame.levels, shape: .badEvent)
        try? reader.object { (reader, key) throws(ReelError) in
            switch key.raw {
            case "site": author = try reader.string()
            case "op": op = try reader.integer()
            case "at": at = try reader.integer()
            default: try reader.skip()
            }
        }
        guard author == site.description, let op else { return nil }
        self.init(seq: seq, op: op, atMs: at)
    }
}
