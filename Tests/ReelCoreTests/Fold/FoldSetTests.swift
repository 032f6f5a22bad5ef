import TestSupport
import Testing

@testable import ReelCore

/// Tests arrays that the operations `add` and `remove` treat as sets.
@Suite struct FoldSetTests {
    @Test("a batch of adds and removes does what naive sets do, whatever the elements are", arguments: 0..<40 * effort)
    func agreesWithNaiveSets(number: Int) throws {
        var random = SeededNumbers(TestSeed.value &+ 7_000 &+ UInt64(number))
        let pool = Self.awkward + (try (0..<30).map { _ in try Self.canonical(&random) })
        var script = FoldScript()
        var sets: [String: [String]] = [:]
        script.event("insert")
        for _ in 0..<40 {
            var changed = sets
            var parts = (0..<Int.random(in: 1...6, using: &random)).map { _ in
                Self.part(&changed, pool, &random)
            }
            let isRejected = random.oneIn(5)
            if isRejected { parts.append(FoldScript.part("update", id: "never")) } else { sets = changed }
            #expect(script.batch(parts) == (isRejected ? .rejected(.noObject) : .applied))
            for name in ["t", "u"] {
                let expected = sets[name].map { Array(Self.array($0).utf8) }
                #expect(script.value(name).map { Array($0.utf8) } == expected)
            }
        }
    }

    @Test("a batch changes a large array again and again")
    func largeArray() {
        let numbers = (210...930).flatMap { tens in (21...120).map { "\(tens / 100).\(tens % 100)1e+\($0)" } }
        let sorted = Self.set(numbers)
        var script = FoldScript()
        script.event("insert", fields: "{\"t\":\(Self.array(sorted))}")
        let parts = (0..<100).map { FoldScript.part("update", ops: "{\"t\":{\"add\":[\($0)]}}") }
        for parts in [Array(parts.prefix(1)), parts] { #expect(script.batch(parts) == .applied) }
        let expected = Self.array(Self.set(numbers + (0..<100).map(String.init)))
        #expect(script.value("t") == expected)
    }

    // MARK: Elements

    /// JSON values whose end is hard to find, or that start with the bytes of another value.
    private static let awkward = [
        #""""#, #"",""#, #""]""#, #""[""#, #""}{""#, #""\"""#, #""\\""#, #""\\\"],""#, #""\",1""#, #""\\\\""#, #""\n""#,
        "[]", "{}", "[[]]", #"[[],"]"]"#, #"["\"]",[1,{}]]"#, #"{"":{}}"#, #"{"]":"[","}":["\\"]}"#,
        "0", "-0.5", "1", "10", "100", "1.5", "1e+21", "1e+210", "true", "false", "null", #""é""#, #""😀""#,
    ]

    private static func canonical(_ random: inout SeededNumbers) throws -> String {
        var bytes: [UInt8] = []
        try Array(RandomJSON.value(levels: 3, &random).written(&random).utf8).withUnsafeBytes {
            try CanonicalJSON.canonicalize($0, into: &bytes)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func array(_ elements: [String]) -> String { "[\(elements.joined(separator: ","))]" }

    /// Returns the distinct elements, sorted by bytes. They are compared as bytes, because Swift strings in different
    /// normal forms are equal.
    private static func set(_ elements: [String]) -> [String] {
        Set(elements.map { Array($0.utf8) }).sorted { $0.lexicographicallyPrecedes($1) }.map {
            String(decoding: $0, as: UTF8.self)
        }
    }

    private static func without(_ elements: [String], _ removed: [String]) -> [String] {
        elements.filter { element in !removed.contains { $0.utf8.elementsEqual(element.utf8) } }
    }

    // MARK: Changes

    /// Returns a part that writes, removes or changes some of two fields, and applies the same change to the naive
    /// sets.
    private static func part(
        _ sets: inout [String: [String]],
        _ pool: [String],
        _ random: inout SeededNumbers
    ) -> String {
        var (fields, ops): ([String], [String]) = ([], [])
        for name in ["t", "u"] where !random.oneIn(4) {
            if random.oneIn(7) {
                let plain = random.oneIn(4) ? nil : some(pool, &random)
                fields.append("\"\(name)\":\(plain.map(array) ?? "null")")
                sets[name] = plain
            } else {
                let (added, removed) = (some(pool, &random), some(pool + (sets[name] ?? []), &random))
                let hasBoth = random.oneIn(2)
                let adds = hasBoth || random.oneIn(2) ? added : nil
                let removes = hasBoth || adds == nil ? removed : nil
                let members = [adds.map { "\"add\":\(array($0))" }, removes.map { "\"remove\":\(array($0))" }]
                ops.append("\"\(name)\":{\(members.compactMap { $0 }.joined(separator: ","))}")
                sets[name] = set(without(sets[name] ?? [], removes ?? []) + (adds ?? []))
            }
        }
        return FoldScript.part(
            "update",
            fields: "{\(fields.joined(separator: ","))}",
            ops: "{\(ops.joined(separator: ","))}"
        )
    }

    /// Returns random elements in random order, possibly with duplicates, and often none.
    private static func some(_ pool: [String], _ random: inout SeededNumbers) -> [String] {
        (0..<Int.random(in: 0...(random.oneIn(6) ? 40 : 4), using: &random)).map { _ in random.pick(pool) }
    }
}
