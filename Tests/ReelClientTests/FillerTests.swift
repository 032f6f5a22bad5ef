import ReelBase
import ReelCore
import Testing

@testable import ReelClient

/// The filler event, which takes the op of an event that cannot go into the log.
@Suite struct FillerTests {
    /// An object that another site has made, and a site that writes to it.
    private struct Ground {
        var fold = Fold(stream: StreamName("s")!, partition: 0, epoch: Epoch(1))
        let (maker, site): (Site, Site)
        var op: Op = 0

        init(fields: [String]) {
            var random = SeededGenerator(seed: 1)
            (maker, site) = (Site.random(using: &random), Site.random(using: &random))
            let texts = fields.reduce(into: FieldMap<JSONValue>()) { $0[$1] = "text" }
            #expect(apply(.insert("m", id: "1", texts), maker, 0, base: -1) == .applied)
        }

        private mutating func apply(_ event: SyncEvent, _ site: Site, _ op: Op, base: Seq) -> Outcome {
            let value = event.encoded(base: base, author: EventID(site: site, op: op))
            return OverlaySimulation.apply(value, to: &fold, at: fold.seq + 1)
        }

        /// Applies an event of the site. The site has read the object as it was made.
        mutating func write(_ event: SyncEvent) -> Outcome {
            defer { op += 1 }
            return apply(event, site, op, base: 0)
        }
    }

    @Test(
        "the fold rejects splices after a filler if they may depend on texts of the replaced event",
        arguments: [1, 2, 15, 16, 17, 18, 40],
        [1, 3]
    )
    func rejectsDependentSplices(count: Int, changes: Int) {
        for length in [1, 60] {
            let fields = (0..<count).map { "f\($0)" + String(repeating: "x", count: length) }
            var ground = Ground(fields: fields + ["other"])
            let parts = (0..<changes).map { part in
                let own = fields.indices.filter { $0 % changes == part }
                return SyncChange.update(
                    "m",
                    id: "1",
                    own.reduce(into: FieldMap<JSONValue>()) { $0[fields[$1]] = "new" }
                )
            }
            let event = changes == 1 ? SyncEvent(parts[0]) : .batch(parts)
            let filler = event.filler
            #expect(filler.isFiller && filler.encoded(base: 0).count < 10 << 10)
            guard case .rejected = ground.write(filler) else {
                Issue.record("a fold takes the filler")
                return
            }
            for field in fields {
                let splice = SyncEvent.update(
                    "m",
                    id: "1",
                    operations: [field: .splice([TextSplice(at: 0, removing: 0, inserting: "x")])]
                )
                #expect(ground.write(splice) == .rejected(.stale), "\(count) fields of \(length), \(field.prefix(5))")
            }
            // If the filler has no room for all fields, the fold rejects all splices of the site with an earlier base.
            let splice = SyncEvent.update(
                "m",
                id: "1",
                operations: ["other": .splice([TextSplice(at: 0, removing: 0, inserting: "x")])]
            )
            #expect(ground.write(splice) == (count <= 16 ? .applied : .rejected(.stale)), "\(count) of \(length)")
            #expect(ground.write(.update("m", id: "1", [fields[0]: "plain"])) == .applied)
        }
    }

    @Test("a filler of an event without a text is a noop")
    func noText() {
        for event in [
            SyncEvent.update("m", id: "1", ["n": 1, "b": true]), .delete("m", id: "1"), .insert("m", id: "2"), .noop,
        ] {
            #expect(event.filler == .noop)
        }
    }
}
