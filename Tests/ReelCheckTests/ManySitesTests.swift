import ReelCore
import Testing

@testable import ReelCheck

@Suite struct ManySitesTests {
    @Test func `A stream has a hundred thousand sites and no more, unless some have ended and are forgotten`() throws {
        var naive = NaiveFold(epoch: "00000000000000aa", partition: 0, of: 1)
        var real = RealPartition(epoch: Epoch(0xaa))
        var seq: Int64 = -1
        /// A noop of the site with this number, by both folds, and what they say.
        func noop(_ site: Int, op: Int = 0) -> String {
            seq += 1
            let uuid = Site(high: 1, low: UInt64(site)).text.string
            // The first sites end at once.
            let last = site < 10 ? #""last":true,"# : ""
            let value = #"{"base":\#(seq - 1),\#(last)"op":\#(op),"site":"\#(uuid)","type":"noop"}"#
            let record = LogRecord(seq: seq, key: Array("todo".utf8), value: Array(value.utf8))
            let judgement = naive.apply(seq: seq, key: record.key, value: record.value)
            let outcome = real.apply(record).description
            #expect(outcome == judgement?.description)
            return outcome
        }
        // The horizon passes the ten that have ended long before the hundred thousandth begins.
        for site in 0..<100_010 where noop(site) != "applied" { Issue.record("site \(site) is not let in") }
        #expect(noop(100_010) == "too_many_sites")
        #expect(noop(100_009, op: 1) == "applied")
        #expect(noop(0) == "too_many_sites")
        #expect(real.digest(of: "todo") == naive.digest(of: "todo"))
    }
}
