import Reel
import TestSupport

/// A property of `Item`: how it is edited at random, and what it must show.
struct Property<B: Build>: Sendable {
    typealias Draw<Value> = @Sendable (inout SeededNumbers) -> Value

    let name: String
    let keyPath: any PartialKeyPath<Item<B>> & Sendable
    /// Returns the field under a name and a former name.
    let field: @Sendable (String, String?) -> [SchemaField<Item<B>>]
    /// Returns the value of the property.
    let shown: @Sendable (Item<B>) -> Plain
    /// Returns what the property shows for a stored value; nil: its default.
    let expected: @Sendable (Plain) -> Plain?
    /// Changes the property at random.
    let edit: @Sendable (inout Item<B>, inout SeededNumbers) -> Void
    /// Returns what the property shows after an edit from one value to another was saved over a present value. Nil if
    /// the test does not know, as for a text.
    let merged: @Sendable (_ present: Plain, _ original: Plain, _ edited: Plain) -> Plain?
    /// Returns true if a change of the property keeps the elements of the stored value that this build does not know.
    var keepsUnknown: @Sendable (_ before: Plain, _ after: Plain) -> Bool = { _, _ in true }
    /// The value that an insert does not write; nil: it writes each value.
    var absent: Plain?
    var isConstant = false
    /// True if an object without the field cannot be read.
    var isRequired = false

    private typealias Model = Schema<Item<B>>
    private typealias Builder = SchemaBuilder<Item<B>>

    private static func plainlyMerged(_ present: Plain, _ original: Plain, _ edited: Plain) -> Plain {
        original == edited ? present : edited
    }

    static func value<Value: Shown>(
        _ name: String,
        _ keyPath: any WritableKeyPath<Item<B>, Value> & Sendable,
        _ draw: @escaping Draw<Value>
    ) -> Property {
        Property(
            name: name,
            keyPath: keyPath,
            field: { Builder.buildExpression(Model.Field($0, keyPath, formerly: $1)) },
            shown: { $0[keyPath: keyPath].plain },
            expected: { Value.shown(for: $0) },
            edit: { $0[keyPath: keyPath] = draw(&$1) },
            merged: plainlyMerged,
            absent: Value.self is any OptionalShown.Type ? .absent : nil
        )
    }

    static func constant<Value: Shown>(
        _ name: String,
        _ keyPath: any WritableKeyPath<Item<B>, Value> & Sendable,
        _ draw: @escaping Draw<Value>
    ) -> Property {
        var property = Property(
            name: name,
            keyPath: keyPath,
            field: { Builder.buildExpression(Model.Constant($0, keyPath, formerly: $1)) },
            shown: { $0[keyPath: keyPath].plain },
            expected: { Value.shown(for: $0) },
            edit: { $0[keyPath: keyPath] = draw(&$1) },
            merged: { (present, _, _) in present }
        )
        property.isConstant = true
        property.isRequired = !(Value.self is any OptionalShown.Type)
        property.absent = property.isRequired ? nil : .absent
        return property
    }

    static func counter(_ name: String, _ keyPath: any WritableKeyPath<Item<B>, Int> & Sendable) -> Property {
        Property(
            name: name,
            keyPath: keyPath,
            field: { Builder.buildExpression(Model.Counter($0, keyPath, formerly: $1)) },
            shown: { $0[keyPath: keyPath].plain },
            expected: { $0 },
            edit: { $0[keyPath: keyPath] += $1.below(7) - 3 },
            merged: { present, original, edited in
                guard case .number(let present) = present, case .number(let original) = original,
                    case .number(let edited) = edited
                else { return nil }
                return .number(present + edited - original)
            },
            absent: .number(0)
        )
    }

    static func set<Element: Shown & Hashable>(
        _ name: String,
        _ keyPath: any WritableKeyPath<Item<B>, Set<Element>> & Sendable,
        _ draw: @escaping Draw<Element>
    ) -> Property {
        Property(
            name: name,
            keyPath: keyPath,
            field: { Builder.buildExpression(Model.MergedSet($0, keyPath, formerly: $1)) },
            shown: { $0[keyPath: keyPath].plain },
            expected: { Set<Element>.shown(for: $0) },
            edit: { $0[keyPath: keyPath].formSymmetricDifference([draw(&$1)]) },
            merged: { present, original, edited in
                guard case .set(let present) = present, case .set(let original) = original,
                    case .set(let edited) = edited
                else { return nil }
                return .set(present.subtracting(original.subtracting(edited)).union(edited.subtracting(original)))
            },
            keepsUnknown: { before, after in
                let unknown = (before.elements ?? []).filter { Element.shown(for: $0) == nil }
                return Set(unknown).isSubset(of: after.elements ?? [])
            },
            absent: .set([])
        )
    }

    static func text(_ name: String, _ keyPath: any WritableKeyPath<Item<B>, String> & Sendable) -> Property {
        Property(
            name: name,
            keyPath: keyPath,
            field: { Builder.buildExpression(Model.Text($0, keyPath, formerly: $1)) },
            shown: { $0[keyPath: keyPath].plain },
            expected: { $0 },
            edit: { item, random in
                let text = item[keyPath: keyPath]
                let start = text.index(text.startIndex, offsetBy: random.below(text.count + 1))
                let end = text.index(start, offsetBy: random.below(4), limitedBy: text.endIndex) ?? text.endIndex
                item[keyPath: keyPath].replaceSubrange(start..<end, with: random.text())
            },
            merged: { present, original, edited in present == original ? edited : original == edited ? present : nil },
            absent: .text([])
        )
    }

    static func bytes(_ name: String, _ keyPath: any WritableKeyPath<Item<B>, [UInt8]> & Sendable) -> Property {
        Property(
            name: name,
            keyPath: keyPath,
            field: { Builder.buildExpression(Model.Bytes($0, keyPath, formerly: $1)) },
            shown: { .list($0[keyPath: keyPath].map { .number(Double($0)) }) },
            expected: { .list(($0.string ?? "").unicodeScalars.map { .number(Double($0.value)) }) },
            edit: { item, random in
                let count = item[keyPath: keyPath].count
                let start = random.below(count + 1)
                let inserted = (0..<random.below(4)).map { _ in UInt8.random(in: 0...255, using: &random) }
                item[keyPath: keyPath].replaceSubrange(start..<min(count, start + random.below(3)), with: inserted)
            },
            merged: { present, original, edited in present == original ? edited : original == edited ? present : nil },
            absent: .list([])
        )
    }

    static func reference(
        _ name: String,
        _ keyPath: any WritableKeyPath<Item<B>, Ref<Folder>?> & Sendable
    ) -> Property {
        Property(
            name: name,
            keyPath: keyPath,
            field: { Builder.buildExpression(Model.Reference($0, keyPath, formerly: $1)) },
            shown: { $0[keyPath: keyPath].plain },
            expected: { $0 },
            edit: { $0[keyPath: keyPath] = $1.oneIn(3) ? nil : $1.folder() },
            merged: plainlyMerged,
            absent: .absent
        )
    }

    static func order(_ name: String, _ keyPath: any WritableKeyPath<Item<B>, Rank> & Sendable) -> Property {
        Property(
            name: name,
            keyPath: keyPath,
            field: { Builder.buildExpression(Model.Order($0, keyPath, formerly: $1)) },
            shown: { $0[keyPath: keyPath].plain },
            expected: { $0 },
            edit: { $0[keyPath: keyPath] = Rank.between($1.oneIn(2) ? $0[keyPath: keyPath] : nil, nil, using: &$1) },
            merged: plainlyMerged
        )
    }

    /// All properties. A schema has at most one of each line, because they have one field.
    static var all: [[Property]] {
        [
            [.constant("createdAt", \.createdAt) { Timestamp(ms: $0.below(9)) }],
            [.constant("author", \.author) { $0.oneIn(2) ? nil : $0.text() }],
            [.value("title", \.title) { $0.text() }],
            [.value("size", \.size) { $0.oneIn(4) ? $0.pick([1 << 53, -(1 << 53)]) : $0.below(9) }],
            [.value("done", \.isDone) { $0.oneIn(2) }],
            [.value("priority", \.priority) { $0.pick([0.1, -0.0, .leastNonzeroMagnitude, 1e300, 7]) }],
            [
                .value("label", \.label) { $0.pick(Label.allCases) },
                .value("label", \.oldLabel) { $0.pick(OldLabel.allCases) },
            ],
            [
                .value("mood", \.mood) { $0.oneIn(3) ? nil : $0.pick(Label.allCases) },
                .value("mood", \.oldMood) { $0.oneIn(3) ? nil : $0.pick(OldLabel.allCases) },
            ],
            [.value("due", \.due) { $0.oneIn(2) ? nil : Timestamp(ms: $0.below(9)) }],
            [.value("steps", \.steps) { random in (0..<random.below(3)).map { _ in random.text() } }],
            [.counter("votes", \.votes), .value("votes", \.votes) { $0.below(9) }],
            [.set("tags", \.tags) { $0.pick(["a", "é", "e\u{301}", ""]) }],
            [
                .set("labels", \.labels) { $0.pick(Label.allCases) },
                .set("labels", \.oldLabels) { $0.pick(OldLabel.allCases) },
            ],
            [.text("note", \.note), .text("note", \.note), .value("note", \.note) { $0.text() }],
            [.bytes("data", \.data)],
            [.reference("folder", \.folder)],
            [.set("folders", \.folders) { $0.folder() }],
            [.order("rank", \.rank)],
        ]
    }
}

/// An `Optional` of a shown type.
private protocol OptionalShown {}

extension Optional: OptionalShown {}

extension SeededNumbers {
    mutating func text() -> String {
        let parts = ["a", "b ", "é", "e\u{301}", "\u{301}", "😀", "🇩🇪", "\r\n", "\u{0}", "字"]
        return (0..<below(4)).map { _ in pick(parts) }.joined()
    }

    mutating func folder() -> Ref<Folder> { Ref(ModelID("\(below(6))")) }
}
