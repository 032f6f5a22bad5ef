import ReelCore
import ReelLog
import ReelNet

/// Asks every node of a cluster how it is.
struct ClusterVisit {
    let probe: NodeProbe
    /// Whom to believe at https://, and who asks.
    let tls: TLSClient
    let token: String?

    /// The nodes that are named, and those that announced themselves to them or, where the log is asked, in it.
    func report(named: [NodeAddress], log: ClusterReport.LogAnswer?) async -> ClusterReport {
        var report = ClusterReport()
        report.log = log.map { $0.map(\.log) }
        var rows: [ClusterRow] = []
        if case .success(let answer)? = log { rows = answer.rows }
        if rows.isEmpty { for node in named { rows += await announced(at: node) } }
        for node in named { report.nodes.append(ClusterReport.Node(address: node, isNamed: true)) }
        // One process after another may have had the same address: the last one counts.
        for row in rows.sorted(by: { ($0.atMs ?? 0) < ($1.atMs ?? 0) }) {
            guard var address = try? NodeAddress(row.url) else {
                if !report.oddAddresses.contains(row.url) { report.oddAddresses.append(row.url) }
                continue
            }
            (address.tls, address.token) = (address.isSecure ? tls : nil, token)
            if let index = report.nodes.firstIndex(where: { $0.address == address }) {
                report.nodes[index].announced = row
            } else {
                report.nodes.append(ClusterReport.Node(address: address, announced: row))
            }
        }
        await look(at: &report)
        if report.nodes.contains(where: \.answers) {
            try? await Task.sleep(for: .milliseconds(ClusterReport.pauseMs))
            await look(at: &report)
        }
        return report
    }

    /// What the node at an address knows of all; empty where it does not answer.
    private func announced(at node: NodeAddress) async -> [ClusterRow] {
        guard case .success(let response) = await probe.get("/v1/cluster", of: node), response.status == 200 else {
            return []
        }
        return (try? response.body.withUnsafeBytes(ClusterRow.rows)) ?? []
    }

    /// Asks all at once, so that their answers are of one moment.
    private func look(at report: inout ClusterReport) async {
        await withTaskGroup(of: (Int, Result<(NodeStanding, MetricsPage), NetError>).self) { group in
            for (index, node) in report.nodes.enumerated() where node.failure.isEmpty {
                group.addTask { (index, await look(at: node.address)) }
            }
            for await (index, result) in group {
                switch result {
                case .success(let (standing, metrics)):
                    report.nodes[index].looks.append(standing)
                    report.nodes[index].metrics = metrics
                case .failure(let error):
                    report.nodes[index].looks = []
                    report.nodes[index].failure = error.message
                }
            }
        }
    }

    private func look(at node: NodeAddress) async -> Result<(NodeStanding, MetricsPage), NetError> {
        do throws(NetError) {
            let standing = try await probe.standing(of: node)
            let page = try await probe.get("/metrics", of: node).get()
            return .success((standing, MetricsPage(String(decoding: page.body, as: UTF8.self))))
        } catch {
            return .failure(error)
        }
    }
}

extension ClusterReport {
    /// What the log itself says, and who announced themselves in it.
    typealias LogAnswer = Result<(log: Log, rows: [ClusterRow]), Complaint>

    /// Asks the log.
    static func ask(_ log: any EventLog) throws -> (log: Log, rows: [ClusterRow]) {
        var bounds: [LogBounds] = []
        for partition in 0..<log.partitions { bounds.append(try log.bounds(partition)) }
        return (Log(epoch: log.epoch, bounds: bounds), try ClusterRow.rows(of: log))
    }
}
