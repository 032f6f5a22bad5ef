import ReelCore
import TestSupport
import Testing

@Suite struct WordsTests {
    @Test("a site is written as it is read") func aSiteIsWritten() throws {
        var random = SeededNumbers(TestSeed.value)
        var sites: [Site] = []
        for _ in 0..<100 {
            let site = Site.random(using: &random)
            let text = site.description
            #expect(Site(text) == site && text.utf8.count == Site.textCount)
            #expect(text.dropFirst(14).first == "4" && "89ab".contains(text.dropFirst(19).first ?? " "))
            var bytes: [UInt8] = []
            site.write(to: &bytes)
            #expect(bytes == Array(text.utf8))
            sites.append(site)
        }
        #expect(sites.sorted().map(\.description) == sites.map(\.description).sorted())
        #expect(
            Site("6f1c0f0e-8d3b-4a6e-9c55-0123456789ab")
                == Site(high: 0x6f1c_0f0e_8d3b_4a6e, low: 0x9c55_0123_4567_89ab)
        )
    }

    @Test(
        "a text that is not a valid site is refused",
        arguments: [
            "", "6F1C0F0E-8D3B-4A6E-9C55-0123456789AB", "6f1c0f0e8d3b4a6e9c550123456789ab",
            "6f1c0f0e-8d3b-4a6e-9c55-0123456789a", "6f1c0f0e-8d3b-4a6e-9c55-0123456789abc",
            "6f1c0f0e-8d3b-4a6e-9c55_0123456789ab", "6f1c0f0g-8d3b-4a6e-9c55-0123456789ab",
        ]
    )
    func refusesInvalidSite(_ text: String) {
        #expect(Site(text) == nil)
    }

    @Test("an epoch is sixteen hex digits") func anEpochIsSixteen() {
        #expect(Epoch("00000000000000ff") == Epoch(255) && Epoch(255).description == "00000000000000ff")
        #expect(Epoch("FF00000000000000") == nil && Epoch("ff") == nil && Epoch("000000000000000-1") == nil)
    }

    @Test(
        "a stream's name is of few characters",
        arguments: [
            ("todo", true), ("a", true), ("A-z_0.9:~", true), ("...a", true), ("", false), (".", false), ("..", false),
            ("~reel", false), ("~", false), ("a b", false), ("ä", false), ("a/b", false),
            (String(repeating: "a", count: 128), true), (String(repeating: "a", count: 129), false),
        ]
    )
    func streamNames(_ text: String, _ isValid: Bool) {
        #expect((StreamName(text) != nil) == isValid)
    }

    @Test(
        "keys find their partition as those of Kafka's Java client do",
        arguments: [
            ("21", -973_932_308), ("foobar", -790_332_482), ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971), ("abc", 479_470_107),
        ] as [(String, Int32)]
    )
    func partitions(_ key: String, _ hash: Int32) throws {
        for partitions in [1, 4, 7, 1_000] {
            let expected = Int(UInt32(bitPattern: hash) & 0x7fff_ffff) % partitions
            #expect(Array(key.utf8).withUnsafeBytes { Partition.number(ofKey: $0, of: partitions) } == expected)
            #expect(StreamName(key)?.partition(of: partitions) == expected)
        }
    }

    @Test("a records hash is FNV 1 a of key zero value") func aRecordsHashIs() {
        func hash(_ text: String) -> UInt64 {
            var hash = FNV1a()
            Array(text.utf8).withUnsafeBytes { hash.add($0) }
            return hash.value
        }
        #expect(hash("") == 0xcbf2_9ce4_8422_2325 && hash("a") == 0xaf63_dc4c_8601_ec8c)
        #expect(hash("foobar") == 0x8594_4171_f739_67e8)
        let record = Array("foo".utf8).withUnsafeBytes { key in
            Array("bar".utf8).withUnsafeBytes { FNV1a.record(key: key, value: $0) }
        }
        #expect(record == hash("foo\0bar"))
    }
}
