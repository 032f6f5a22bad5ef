import Testing

@testable import ReelCheck

@Suite struct NaiveFoldTests {
    @Test("A record below the last one is not folded again") func aRecordBelowTheLastOneIs() {
        var fold = NaiveFold(epoch: "0123456789abcdef", partition: 0, of: 1)
        #expect(fold.apply(seq: 3, key: [], value: []) == .void("the key names no stream"))
        #expect(fold.apply(seq: 3, key: [], value: []) == nil)
    }
}
