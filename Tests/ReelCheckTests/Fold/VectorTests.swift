import Foundation
import ReelCore
import Testing

@testable import ReelCheck

/// Checks both folds with the histories of Tests/Vectors. `REEL_WRITE_VECTORS=1` writes their outcomes and states
/// again.
@Suite struct VectorTests {
    @Test("The naive fold makes of a history what its vector says", arguments: Vector.names)
    func theNaiveFoldMakesOfAHistory(name: String) throws {
        if ProcessInfo.processInfo.environment["REEL_WRITE_VECTORS"] == "1" { try Vector(name).rewrite() }
        let vector = try Vector(name)
        var fold = NaiveFold(epoch: vector.epoch, partition: vector.partition, of: vector.partitions)
        for step in vector.steps {
            for record in try vector.records(of: step) {
                let judgement = fold.apply(seq: record.seq, key: record.key, value: record.value)
                #expect(judgement?.description == step.outcome, "\(name), seq \(record.seq)")
            }
        }
        #expect(fold.digest(of: vector.stream) == vector.digest)
        #expect(text(fold.snapshot(of: vector.stream) ?? []) == text(vector.snapshot))
        for delta in vector.deltas {
            #expect(text(fold.snapshot(of: vector.stream, after: delta.after) ?? []) == text(delta.lines))
        }
    }

    @Test("The real fold makes of a history what its vector says", arguments: Vector.names)
    func theRealFoldMakesOfAHistory(name: String) throws {
        let vector = try Vector(name)
        let epoch = try #require(Epoch(vector.epoch))
        var fold = RealPartition(epoch: epoch, partition: vector.partition, of: vector.partitions)
        for step in vector.steps {
            for record in try vector.records(of: step) {
                #expect(fold.apply(record).description == step.outcome, "\(name), seq \(record.seq)")
            }
        }
        #expect(fold.digest(of: vector.stream) == vector.digest)
        guard !vector.snapshot.isEmpty else { return }
        try expect(fold.lines(of: vector.stream, after: -1), toSay: vector.snapshot)
        for delta in vector.deltas {
            try expect(fold.lines(of: vector.stream, after: delta.after), toSay: delta.lines)
        }
    }

    @Test("Keys and records have the hashes of the vectors") func keysAndRecordsHaveTheHashesOf() throws {
        let vectors = try JSON(reading: Array(Data(contentsOf: Vector.folder.appending(path: "hashes.json"))), depth: 8)
        let keys = try #require(vectors["keys"]?.array)
        for vector in keys {
            let key = try #require(vector["key"]?.text).bytes
            #expect(vector["murmur2"]?.integer == Int64(murmur2(key)))
            for member in try #require(vector["partitions"]?.members) {
                let partitions = try #require(Int(member.name.string))
                #expect(member.value.integer == Int64(partition(of: key, among: partitions)))
                let real = key.withUnsafeBytes { ReelCore.Partition.number(ofKey: $0, of: partitions) }
                #expect(member.value.integer == Int64(real))
            }
        }
        for vector in try #require(vectors["records"]?.array) {
            let (key, value) = (try #require(vector["key"]?.text).bytes, try #require(vector["value"]?.text).bytes)
            let real = key.withUnsafeBytes { key in value.withUnsafeBytes { FNV1a.record(key: key, value: $0) } }
            #expect(vector["hash"]?.text?.string == hex(recordHash(key: key, value: value), digits: 16))
            #expect(real == recordHash(key: key, value: value))
        }
    }

    @Test("Snapshots of the vectors have the digest that they say") func snapshotsOfTheVectorsHaveTheDigest() throws {
        for name in Vector.names {
            let vector = try Vector(name)
            guard !vector.snapshot.isEmpty else { continue }
            let snapshot = try NaiveSnapshot(vector.snapshot)
            #expect(snapshot.digest == vector.digest && snapshot.declaredDigest == vector.digest, "\(name)")
        }
    }

    /// Compares normal forms, because two folds may write the history of a text in different runs.
    private func expect(_ found: [UInt8], toSay lines: [UInt8]) throws {
        let (found, right) = (try NaiveSnapshot(found), try NaiveSnapshot(lines))
        #expect(text(found.normalForm) == text(right.normalForm))
        #expect(found.declaredDigest == right.declaredDigest)
    }

    private func text(_ lines: [UInt8]) -> String {
        String(decoding: lines, as: UTF8.self)
    }
}
