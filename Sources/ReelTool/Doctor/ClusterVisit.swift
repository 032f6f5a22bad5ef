import ReelBase
import ReelCore
import ReelLog
import ReelNet
import ReelNode

/// The requests of `reel doctor` to every node of a cluster.
struct ClusterVisit {
    let probe: NodeProbe
    /// The authorities to trust at https:// addresses.
    let tls: TLSClient
    /// The token to send; nil for none.
    let token: String?

    /// Asks all nodes and returns their answers.
    ///
    /// - Parameters:
    ///   - named: the nodes that the user named.
    ///   - log: the answers of the log; nil if it was not asked. They also list the nodes. Otherwise the named nodes
    ///     do.
    func report(named: [NodeAddress], log: ClusterReport.LogAnswer?) async -> ClusterReport {
        var report = ClusterReport()
        report.log = log.map { $0.map(\.log) }
        var rows: [ClusterRow] = []
        if case .success(let answer)? = log { (rows, report.complaints) = (answer.rows, answer.complaints) }
        let asksNodes = rows.isEmpty
        for address in named {
            var node = ClusterReport.Node(address: address, isNamed: true)
            if asksNodes {
                do throws(NodeProbe.NoSignOfLife) {
                    rows += try await announced(at: address)
                } catch {
                    node.secrecy = error
                }
            }
            report.nodes.append(node)
        }
        report.add(rows, tls: tls, token: token)
        await look(at: &report)
        if report.nodes.contains(where: \.answers) {
            try? await Task.sleep(for: .milliseconds(ClusterReport.pauseMs))
            await look(at: &report)
        }
        return report
    }

    /// Returns the announcements that the node at an address knows.
    private func announced(at node: NodeAddress) async throws(NodeProbe.NoSignOfLife) -> [ClusterRow] {
        let response: HTTPResponse
        switch await probe.get("/v1/cluster", of: node) {
        case .success(let answer): response = answer
        case .failure(let error): throw NodeProbe.NoSignOfLife(message: error.message)
        }
        guard response.status == 200 else {
            let refusal = Refusal(response)
            throw NodeProbe.NoSignOfLife(message: refusal.message, refusal: refusal.code)
        }
        do {
            var rows = try response.body.withUnsafeBytes(ClusterRow.rows)
            // An operator's port on the loopback is not announced, so this request's address is used.
            for index in rows.indices where rows[index].isWhoAnswers { rows[index].adminURL = "\(node)" }
            return rows
        } catch {
            throw NodeProbe.NoSignOfLife(message: "its answer cannot be read: \(CommandError(error).message)")
        }
    }

    /// Asks all nodes at the same time, so that their answers can be compared.
    private func look(at report: inout ClusterReport) async {
        await withTaskGroup(of: (Int, Result<Look, NodeProbe.NoSignOfLife>).self) { group in
            for (index, node) in report.nodes.enumerated() where node.failure.isEmpty {
                group.addTask { (index, await look(at: node.address, admin: node.admin)) }
            }
            for await (index, result) in group {
                switch result {
                case .success(let look):
                    report.nodes[index].looks.append(look.standing)
                    report.nodes[index].askedMs = look.askedMs
                    report.nodes[index].metrics = look.metrics
                    report.nodes[index].metricsRefusal = look.metricsRefusal
                    report.nodes[index].crowd = look.crowd
                case .failure(let silence):
                    report.nodes[index].looks = []
                    report.nodes[index].failure = silence.message
                    report.nodes[index].refusal = silence.refusal
                }
            }
        }
    }

    /// The answers of a node at one moment.
    private struct Look {
        var standing: NodeStanding
        var askedMs: Int64
        var metrics = MetricsPage()
        var metricsRefusal: NodeProbe.NoSignOfLife?
        var crowd: Result<[String: Int], NodeProbe.NoSignOfLife>?
    }

    private func look(at node: NodeAddress, admin: NodeAddress?) async -> Result<Look, NodeProbe.NoSignOfLife> {
        do throws(NodeProbe.NoSignOfLife) {
            var look = Look(standing: try await probe.standing(of: node), askedMs: WallClock.nowMs())
            // The port for clients shows that the node serves; the operator's port gives more details.
            if let admin, let standing = try? await probe.standing(of: admin) { look.standing = standing }
            switch await probe.get("/metrics", of: admin ?? node) {
            case .failure(let error) where admin == nil: return .failure(NodeProbe.NoSignOfLife(message: error.message))
            case .failure(let error): look.metricsRefusal = NodeProbe.NoSignOfLife(message: error.message)
            case .success(let response) where response.status != 200:
                let refusal = Refusal(response)
                look.metricsRefusal = NodeProbe.NoSignOfLife(message: refusal.message, refusal: refusal.code)
            case .success(let response):
                look.metrics = MetricsPage(String(decoding: response.body, as: UTF8.self))
            }
            if look.metrics.value("reel_snapshot_half_full_streams") > 0 { look.crowd = await crowd(of: node) }
            return .success(look)
        } catch {
            return .failure(error)
        }
    }

    /// Asks a snapshot node for the streams that are close to the limit of sites, with their numbers of sites.
    private func crowd(of node: NodeAddress) async -> Result<[String: Int], NodeProbe.NoSignOfLife> {
        let response: HTTPResponse
        switch await probe.get("/v1/sites", of: node) {
        case .success(let answer): response = answer
        case .failure(let error): return .failure(NodeProbe.NoSignOfLife(message: error.message))
        }
        guard response.status == 200 else {
            let refusal = Refusal(response)
            return .failure(NodeProbe.NoSignOfLife(message: refusal.message, refusal: refusal.code))
        }
        do throws(CommandError) {
            return .success(try Self.crowd(response.body))
        } catch {
            return .failure(NodeProbe.NoSignOfLife(message: error.message))
        }
    }

    private static func crowd(_ body: [UInt8]) throws(CommandError) -> [String: Int] {
        var crowd: [String: Int] = [:]
        try JSONReader.members(ofAnswer: body) { (reader, key) throws(ReelError) in
            guard key.string == "streams" else { return try reader.skip() }
            try reader.array { (reader) throws(ReelError) in
                var (stream, sites): (String?, Int64) = (nil, 0)
                try reader.object { (reader, key) throws(ReelError) in
                    switch key.raw {
                    case "stream": stream = try reader.string()
                    case "sites": sites = try reader.integer()
                    default: try reader.skip()
                    }
                }
                if let stream { crowd[stream] = Int(clamping: sites) }
            }
        }
        return crowd
    }
}

extension ClusterReport {
    /// Adds the nodes that announced themselves. If several processes have announced one address, the last one counts.
    ///
    /// If all named nodes are at https://, only such nodes get the token, because every writer of the log can announce
    /// any address.
    ///
    /// - Parameters:
    ///   - rows: the announcements.
    ///   - tls: the authorities to trust.
    ///   - token: the token to send; nil for none.
    mutating func add(_ rows: [ClusterRow], tls: TLSClient, token: String?) {
        let isOpen = nodes.isEmpty || nodes.contains { !$0.address.isSecure }
        var latest: [(address: NodeAddress, row: ClusterRow)] = []
        for row in rows.sorted(by: { ($0.atMs ?? 0) < ($1.atMs ?? 0) }) {
            guard var address = try? NodeAddress(row.url) else {
                if !row.hasLeft, !oddAddresses.contains(row.url) { oddAddresses.append(row.url) }
                continue
            }
            address.tls = address.isSecure ? tls : nil
            address.token = address.isSecure || isOpen ? token : nil
            latest.removeAll { [address] in $0.address == address }
            latest.append((address, row))
        }
        for (address, row) in latest {
            var admin = row.adminURL.flatMap { try? NodeAddress($0) }
            if let isSecure = admin?.isSecure {
                admin?.tls = isSecure ? tls : nil
                admin?.token = isSecure || isOpen ? token : nil
            }
            // The user can have named either port of the node.
            if let index = nodes.firstIndex(where: { $0.address == address || $0.address == admin }) {
                (nodes[index].address, nodes[index].announced, nodes[index].admin) = (address, row, admin)
            } else if row.hasLeft {
                left.append("\(row.role) \(address) (\(row.seen))")
            } else {
                nodes.append(Node(address: address, announced: row, admin: admin))
            }
        }
    }

    /// The answers of the log itself, the announcements in it, and the problems of its store.
    typealias LogAnswer = Result<(log: Log, rows: [ClusterRow], complaints: [String]), CommandError>

    /// Asks the log, one partition after the other, and its store. Blocks. Calls `heard` after each answer.
    static func ask(
        _ log: any EventLog,
        _ store: any LogStore,
        _ heard: () -> Void
    ) throws -> (log: Log, rows: [ClusterRow], complaints: [String]) {
        let complaints = try store.complaints()
        heard()
        var bounds: [LogBounds] = []
        for partition in 0..<log.partitions {
            bounds.append(try log.bounds(partition))
            heard()
        }
        let answer = Log(epoch: log.epoch, bounds: bounds, notice: log.notice)
        return (answer, try ClusterRow.rows(of: log), complaints)
    }
}
