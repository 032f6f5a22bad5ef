import Testing

@testable import ReelLab

/// Tests the schedule of a chaos run.
@Suite struct ChaosFaultTests {
    private func schedule(_ seed: UInt64, brokers: Int = 3) -> [ChaosFault] {
        ChaosFault.schedule(seed: seed, forMs: 600_000, gateways: 3, snapshots: 2, brokers: brokers)
    }

    @Test("a seed gives the same schedule") func aSeedGivesThe() {
        #expect(schedule(7) == schedule(7))
        #expect(schedule(7) != schedule(8))
    }

    @Test("every kind of fault comes") func everyKindOfFault() {
        #expect(Set(schedule(1).map(\.kind)) == Set(ChaosFault.Kind.allCases))
    }

    @Test("a target has one fault at a time, and brokers fail one after another") func faultsDoNotOverlap() {
        for seed in 0..<50 as Range<UInt64> {
            var until: [String: Int64] = [:]
            for fault in schedule(seed) {
                let name = "\(fault.target)"
                for group in fault.hitsBroker ? [name, "brokers"] : [name] {
                    #expect(fault.atMs >= until[group] ?? 0)
                    until[group] = fault.atMs + fault.lastsMs
                }
                #expect(fault.atMs + fault.lastsMs <= 600_000)
            }
        }
    }

    @Test("the ways to gateways and brokers break in every way") func theWaysToGateways() {
        let ofNetwork = Set(ChaosFault.Kind.allCases.filter(\.isOfNetwork))
        for group in ["gateway", "broker"] {
            #expect(Set(schedule(1).filter { $0.target.group == group }.map(\.kind)).isSuperset(of: ofNetwork))
        }
    }

    @Test("without brokers none is broken") func withoutBrokersNoneIs() {
        #expect(!schedule(3, brokers: 0).contains { "\($0.target)".hasPrefix("broker") })
    }
}
