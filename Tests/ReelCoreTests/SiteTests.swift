import ReelCore
import Testing

@Suite struct SiteTests {
    @Test func ordersAsItsBytes() {
        #expect(Site(high: 1, low: 2) < Site(high: 1, low: 3))
        #expect(Site(high: 1, low: 9) < Site(high: 2, low: 0))
    }
}
