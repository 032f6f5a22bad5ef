import ReelCore
import TestSupport
import Testing

@testable import ReelCheck

@Suite struct ManySitesTests {
    @Test("A stream has a hundred thousand sites and no more, unless some have ended and are forgotten")
    func aStreamHasAHundredThousandSites() throws {
        var naive = NaiveFold(epoch: "00000000000000aa", partition: 0, of: 1)
        var real = RealPartition(epoch: Epoch(0xaa))
        var seq: Int64 = -1
        /// Folds a record with both folds and returns the outcome.
        func fold(_ key: String, _ value: String) -> String {
            let record = LogRecord(seq: seq, key: Array(key.utf8), value: Array(value.utf8))
            let judgement = naive.apply(seq: seq, key: record.key, value: record.value)
            let outcome = real.apply(record).description
            #expect(outcome == judgement?.description)
            return outcome
        }
        /// Folds a noop of the site with this number.
        func noop(_ site: Int, op: Int = 0) -> String {
            seq += 1
            let uuid = Site(high: 1, low: UInt64(site)).text.string
            // The first ten sites end with their first event.
            return fold("todo", EventText.logged("noop", uuid, op, base: seq - 1, isLast: site < 10).text)
        }
        /// Folds a barrier that retires the sites without an event after the seq `before`.
        func retire(before: Int64) -> String {
            seq += 1
            return fold("~reel", #"{"retire":{"before":\#(before),"stream":"todo"},"type":"barrier"}"#)
        }
        // The horizon passes the ten ended sites long before the site 100,000 begins.
        for site in 0..<100_010 where noop(site) != "applied" { Issue.record("site \(site) is not let in") }
        #expect(noop(100_010) == "too_many_sites")
        #expect(noop(100_009, op: 1) == "applied")
        #expect(noop(0) == "too_many_sites")

        // The sites 10 to 12 have written at the seqs 10 to 12.
        #expect(retire(before: 12) == "barrier")
        #expect(noop(10, op: 1) == "gap")
        for site in 200_000..<200_003 { #expect(noop(site) == "applied") }
        #expect(noop(200_003) == "too_many_sites")
        // A site that ends makes room for a new site, although the fold still knows both.
        #expect(noop(5) == "too_many_sites")
        #expect(retire(before: 13) == "barrier")
        #expect(noop(5) == "applied")
        #expect(noop(200_003) == "applied")
        #expect(noop(200_004) == "too_many_sites")
        #expect(real.digest(of: "todo") == naive.digest(of: "todo"))

        // The fold accepts a site that a gateway made for one request, even if there is no room. The site counts until
        // it ends.
        func noop(uuid: String, op: Int = 0, last: Bool = false) -> String {
            seq += 1
            return fold("todo", EventText.logged("noop", uuid, op, base: seq - 1, isLast: last).text)
        }
        #expect(noop(uuid: "00000000-0000-8000-8000-000000000001") == "applied")
        #expect(noop(uuid: "ffffffff-ffff-8fff-bfff-ffffffffffff") == "applied")
        #expect(retire(before: 14) == "barrier")
        #expect(noop(200_004) == "too_many_sites")
        #expect(noop(uuid: "00000000-0000-8000-8000-000000000001", op: 1, last: true) == "applied")
        #expect(noop(200_004) == "too_many_sites")
        #expect(noop(uuid: "ffffffff-ffff-8fff-bfff-ffffffffffff", op: 1, last: true) == "applied")
        #expect(noop(200_004) == "applied")
        for other in ["00000000-0000-8000-c000-000000000001", "00000000-0000-7000-8000-000000000001"] {
            #expect(noop(uuid: other) == "too_many_sites")
        }
        #expect(real.digest(of: "todo") == naive.digest(of: "todo"))
    }
}
