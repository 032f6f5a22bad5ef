import ReelCore
import ReelLog
import ReelNode
import Testing

/// Tests that a node reports the worst state of its roles and partitions.
@Suite struct NodeHealthTests {
    private func gateway(_ partitions: PartitionHealth..., log: LogState = .ok) -> RoleHealth {
        RoleHealth(.gateway, log: log, partitions: partitions)
    }

    private func snapshot(_ partitions: PartitionHealth..., log: LogState = .ok, detail: String? = nil) -> RoleHealth {
        RoleHealth(.snapshot, log: log, detail: detail, partitions: partitions)
    }

    private let well = PartitionHealth(seq: 9, goal: 4)

    @Test("a role is ready once every partition is read to the end as of the start")
    func goals() {
        #expect(!gateway(PartitionHealth(seq: 3, goal: 4), well).isReady)
        #expect(gateway(PartitionHealth(seq: 4, goal: 4), well).isReady)
        #expect(gateway(PartitionHealth(seq: -1, goal: -1)).isReady, "an empty partition")
        #expect(!snapshot(PartitionHealth(seq: -1, goal: -1, isOpen: false)).isReady)
        var behind = gateway(well)
        behind.isBehind = true
        #expect(!behind.isReady && behind.reason == "the other gateways are too far ahead")
        #expect(
            gateway(well, PartitionHealth(seq: 3, goal: 4)).reason
                == "partition 1 is at seq 3 of 4 that were there at the start"
        )
    }

    @Test(
        "a stopped partition makes its role unready unless the cause is temporary",
        arguments: PartitionHealth.Stop.codes
    )
    func stoppedPartition(code: ErrorCode) {
        let role = snapshot(well, PartitionHealth(seq: 9, goal: 4, stop: .init(code, "found this, expected that")))
        let lasting: [ErrorCode] = [.damaged, .diverged, .aheadOfLog, .truncated, .internal]
        #expect(role.isReady == !lasting.contains(code))
        guard lasting.contains(code) else { return }
        #expect(role.reason == "partition 1 has stopped: \(code.rawValue): found this, expected that")
    }

    @Test("a node with both roles reports the health of the worse role, and names it")
    func worseRole() {
        let stop = PartitionHealth.Stop(.damaged, "a record is damaged")
        let dead = snapshot(PartitionHealth(seq: 4, goal: 9, stop: stop), log: .unavailable, detail: "partition 0")
        let node = NodeHealth([gateway(well), dead])
        #expect(!node.isReady)
        #expect(node.log == .unavailable)
        #expect(node.detail == "snapshot: partition 0")
        #expect(node.reason == "snapshot: partition 0 has stopped: damaged: a record is damaged")
        #expect(NodeHealth([gateway(well), snapshot(well)]).isReady)
        #expect(!NodeHealth([gateway(well)], isLeaving: true).isReady)
        #expect(NodeHealth([gateway(well)], isLeaving: true).reason == "it is leaving")
    }

    @Test("the body of /readyz has every role and every partition")
    func body() {
        let stop = PartitionHealth.Stop(.truncated, "the log was trimmed")
        let node = NodeHealth([
            gateway(PartitionHealth(seq: 4, goal: 4, skippedTo: 5)),
            snapshot(PartitionHealth(seq: 1, goal: 4, stop: stop), log: .truncated, detail: "trimmed"),
        ])
        let body = String(decoding: node.body(epoch: Epoch(1), deployment: Deployment(2)), as: UTF8.self)
        let (head, tail) = (body.prefix { $0 != "k" }, body.drop { $0 != "}" })
        #expect(!head.isEmpty && !tail.isEmpty)
        let members = [
            #"{"ready":false,"leaving":false,"reason":"snapshot: partition 0 has stopped: truncated: the log was"#
                + #" trimmed","log":"truncated","detail":"snapshot: trimmed","epoch":"0000000000000001","#
                + #""deployment":"0000000000000002","clock":"#,
            #""roles":[{"role":"gateway","ready":true,"behind":false,"log":"ok","partitions":[{"partition":0,"#
                + #""ready":true,"seq":4,"goal":4,"skipped_to":5}]},"#,
            #"{"role":"snapshot","ready":false,"log":"truncated","partitions":[{"partition":0,"ready":false,"seq":1,"#
                + #""goal":4,"code":"truncated","stopped":"the log was trimmed"}]}]}"#,
        ]
        for member in members { #expect(body.contains(member), "\(body)") }
    }

    @Test("a node announces both roles, whether it is ready, and what it has lost")
    func announcement() {
        var stop = PartitionHealth.Stop(.aheadOfLog, "the log ends at 3")
        stop.lost = Witness(seq: 9, hash: 7)
        let node = NodeHealth([gateway(well), snapshot(PartitionHealth(seq: 9, goal: 9, stop: stop))])
        var announced = NodeAnnouncement(id: "n", role: "serve", url: "", advertised: nil, build: "0", atMs: 1)
        announced.take(node)
        #expect(announced.isReady == false)
        #expect(announced.positions == [.init(partition: 0, seq: 9)])
        #expect(announced.folded == [.init(partition: 0, seq: 9)])
        #expect(
            announced.stops
                == [.init(role: "snapshot", partition: 0, code: .aheadOfLog, lost: Witness(seq: 9, hash: 7))]
        )
    }
}
