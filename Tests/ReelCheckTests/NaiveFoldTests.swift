import Testing

@testable import ReelCheck

@Suite struct NaiveFoldTests {
    @Test func `A record below the last one is not folded again`() {
        var fold = NaiveFold(epoch: "0123456789abcdef", partition: 0, of: 1)
        #expect(fold.apply(seq: 3, key: [], value: []) == .void("the key names no stream"))
        #expect(fold.apply(seq: 3, key: [], value: []) == nil)
    }
}
