import ReelCore
import ReelLog
import Testing

@testable import ReelKafka

/// Tests the records that contain the current log of a deployment and its nodes.
@Suite struct ControlRecordTests {
    private func record(_ key: String, _ json: String) -> CurrentLog? {
        Array(key.utf8).withUnsafeBytes { key in Array(json.utf8).withUnsafeBytes { CurrentLog(key: key, json: $0) } }
    }

    private func announcement(_ json: [UInt8]) -> NodeAnnouncement? {
        json.withUnsafeBytes { NodeAnnouncement(json: $0) }
    }

    @Test("a record is canonical JSON") func aRecordIsCanonical() {
        let log = CurrentLog(epoch: Epoch(0x9f), partitions: 16, number: 3, deployment: Deployment(0xa))
        let json = #"{"deployment":"000000000000000a","epoch":"000000000000009f","n":3,"partitions":16}"#
        #expect(String(decoding: log.json, as: UTF8.self) == json)
        #expect(record("current", json) == log)
    }

    @Test("a record of an older build uses its own epoch as its deployment")
    func olderRecord() {
        let log = record("current", #"{"epoch":"000000000000009f","n":3,"partitions":16}"#)
        #expect(log == CurrentLog(epoch: Epoch(0x9f), partitions: 16, number: 3, deployment: Deployment(0x9f)))
    }

    @Test(
        "an invalid control record gives no current log",
        arguments: [
            ("other", #"{"epoch":"000000000000009f","n":3,"partitions":16}"#), ("current", ""), ("current", "{}"),
            ("current", #"{"epoch":"9f","n":3,"partitions":16}"#),
            ("current", #"{"epoch":"000000000000009f","n":-1,"partitions":16}"#),
            ("current", #"{"epoch":"000000000000009f","n":0,"partitions":0}"#),
            ("current", #"{"epoch":"000000000000009f","n":0,"partitions":9007199254740991}"#),
            ("current", "[1]"), ("current", "\u{0}"),
            ("current", #"{"deployment":"a","epoch":"000000000000009f","n":3,"partitions":16}"#),
            ("current", #"{"deployment":1,"epoch":"000000000000009f","n":3,"partitions":16}"#),
        ]
    ) func ignoresInvalidRecord(key: String, json: String) {
        #expect(record(key, json) == nil)
    }

    @Test("only the next number counts") func onlyTheNextNumber() {
        let log = CurrentLog(epoch: Epoch(1), partitions: 4, number: 7)
        #expect(log.follows(nil))
        #expect(log.follows(CurrentLog(epoch: Epoch(2), partitions: 4, number: 6)))
        for number in [5, 7, 8] { #expect(!log.follows(CurrentLog(epoch: Epoch(2), partitions: 4, number: number))) }
    }

    @Test("an announcement comes back as it was") func anAnnouncementComesBack() throws {
        var node = NodeAnnouncement(
            id: "n1",
            role: "gateway",
            url: "http://a:1",
            advertised: "wss://é\u{0}",
            build: "0.1 \"x\"",
            epoch: Epoch(7),
            positions: [.init(partition: 0, seq: -1), .init(partition: 3, seq: largestInteger)],
            atMs: 1_795_307_224_596
        )
        #expect(announcement(node.json) == node)
        (node.advertised, node.epoch, node.positions) = (nil, nil, [])
        #expect(announcement(node.json) == node)
        node.hasLeft = true
        #expect(announcement(node.json) == node)
        #expect(announcement(Array(#"{"id":"n","new":{"a":[1]}}"#.utf8))?.id == "n")
        for json in [
            "", "{}", "[]", #"{"id":1}"#, #"{"id":"n","partitions":[[1]]}"#, #"{"id":"n","partitions":[[-1,0]]}"#,
        ] {
            #expect(announcement(Array(json.utf8)) == nil, "\(json)")
        }
    }
}
