import Testing

@testable import ReelCore

/// Tests the sums that the fold keeps for the digest and for the size.
@Suite struct FoldDigestTests {
    /// Folds 60 rounds of events, and calls `step` in each. Objects and sites are created and ended, and the horizon
    /// passes them. Each round contains a batch that is rejected. Two objects and one site remain.
    @discardableResult
    private static func comingAndGoing(_ step: (Int, inout FoldScript) throws -> Void) rethrows -> FoldScript {
        var script = FoldScript()
        script.event("insert", id: "kept")
        for round in 0..<60 {
            for number in 0..<20 {
                script.event("insert", id: "\(number)", fields: "{\"a\":\(round)}")
                script.event("delete", id: "\(number)")
                script.noop(2 + number, op: 0, last: true)
            }
            script.batch([FoldScript.part("insert", id: "new"), FoldScript.part("update", id: "never")])
            script.event("insert", id: "written", fields: "{\"a\":\(round)}")
            try step(round, &script)
            for _ in 0..<15 { script.noop() }
            script.setHorizon(script.fold.seq - 15)
            script.fold.forget()
        }
        return script
    }

    @Test("the fold bounds its lists of unhashed entries if no caller asks for the digest")
    func boundsUnhashedEntries() throws {
        var script = Self.comingAndGoing { _, script in
            #expect(script.fold.unhashedObjects.count < 60)
            #expect(script.fold.unhashedSites.count < 100)
        }
        #expect(script.fold.entryCount == 3)
        let digest = script.fold.digest()
        #expect(try Self.hashedAnew(&script.fold) == digest)
    }

    @Test("a digest asked for every few rounds misses nothing, and counts nothing twice", arguments: [2, 7, 29])
    func isWhole(interval: Int) throws {
        try Self.comingAndGoing { (round: Int, script: inout FoldScript) throws in
            guard round % interval == 0 else { return }
            let digest = script.fold.digest()
            #expect(try Self.hashedAnew(&script.fold) == digest)
        }
    }

    @Test("the living objects and their bytes are counted as the digest is", arguments: [1, 2, 7])
    func size(interval: Int) throws {
        try Self.comingAndGoing { (round: Int, script: inout FoldScript) throws in
            guard round % interval == 0 else { return }
            _ = script.fold.digest()
            let living = script.fold.slots().map { script.fold.object(at: $0) }.filter { !$0.isDeleted }
            let bytes = living.map { object in
                let fields = object.fields.map { $0.name.count + 3 + $0.value.count }
                return object.model.count + object.id.count + 2 + fields.reduce(0, +) + max(0, fields.count - 1)
            }
            #expect(script.fold.livingObjects == living.count)
            #expect(script.fold.objectBytes == bytes.reduce(0, +), "\(living)")
        }
    }

    /// Returns the digest of a copy of the fold that has no hashes yet.
    private static func hashedAnew(_ fold: inout Fold) throws -> UInt64 {
        var read = try fold.lines().withUnsafeBytes { try Fold(snapshot: $0) }
        return read.digest()
    }
}
