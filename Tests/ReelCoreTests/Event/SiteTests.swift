import ReelCore
import Testing

@Suite struct SiteTests {
    @Test("orders as its bytes") func ordersAsItsBytes() {
        #expect(Site(high: 1, low: 2) < Site(high: 1, low: 3))
        #expect(Site(high: 1, low: 9) < Site(high: 2, low: 0))
    }

    @Test("is read of lower case hex digits only at each place") func isReadOfLower() throws {
        let text = Array("6f1c0f0e-8d3b-4a6e-9c55-0123456789ab".utf8)
        func read(_ bytes: [UInt8]) -> Site? { bytes.withUnsafeBytes { Site(bytes: $0) } }
        #expect(read(text) == Site(high: 0x6f1c_0f0e_8d3b_4a6e, low: 0x9c55_0123_4567_89ab))
        #expect(read(Array(text.dropLast())) == nil && read(text + [0x30]) == nil)
        for place in text.indices {
            for byte in UInt8.min ... .max {
                var changed = text
                changed[place] = byte
                let isDigit = (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte)
                let isRight = text[place] == 0x2d ? byte == 0x2d : isDigit
                let site = read(changed)
                #expect((site != nil) == isRight, "byte \(byte) at \(place)")
                if let site { #expect(Array(site.description.utf8) == changed) }
            }
        }
    }
}
