import Reel
import Synchronization
import TestSupport

/// The properties that a build has in its schema.
struct Shape<B: Build>: Sendable {
    let properties: [NamedProperty<B>]
    let schema: Schema<Item<B>>

    init(_ properties: [NamedProperty<B>]) {
        self.properties = properties
        schema = Schema("item") {
            return properties.flatMap { $0.property.field($0.name, $0.formerly) }
        }
    }

    /// Chooses most of all properties.
    ///
    /// - Parameters:
    ///   - renamed: the properties whose fields have another name in the old build. Most newer builds know that name.
    ///   - random: the generator of the choice.
    init(renamed: Set<String>, _ random: inout SeededNumbers) {
        var chosen: [NamedProperty<B>] = []
        for choices in Property<B>.all where !random.oneIn(8) {
            let property = random.pick(choices)
            let (old, new) = (property.name + " before", property.name)
            let isRenamed = renamed.contains(new)
            let formerly = isRenamed && !B.isOld && !random.oneIn(4) ? old : nil
            chosen.append(NamedProperty(property: property, name: isRenamed && B.isOld ? old : new, formerly: formerly))
        }
        self.init(chosen.shuffled(using: &random))
    }

    /// Returns what the properties show for a value, in the order of `properties`.
    func shown(_ item: Item<B>) -> [Plain] { properties.map { $0.property.shown(item) } }

    /// Returns a value in which about half of the properties are set.
    func item(_ id: Item<B>.ID, _ random: inout SeededNumbers) -> Item<B> {
        var item = Item<B>(id: id)
        for property in properties where random.oneIn(2) { property.property.edit(&item, &random) }
        return item
    }

    /// Changes a value as an app does it. Equal seeds make equal changes.
    func change(_ item: inout Item<B>, _ seed: UInt64) {
        var random = SeededNumbers(seed)
        for _ in 0..<random.below(6) {
            guard let property = properties.randomElement(using: &random), !property.property.isConstant else {
                continue
            }
            property.property.edit(&item, &random)
        }
    }

    func changed(_ item: Item<B>, _ seed: UInt64) -> Item<B> {
        var item = item
        change(&item, seed)
        return item
    }

    /// All names of fields that the build knows.
    var names: Set<String> { Set(properties.map(\.name) + properties.compactMap(\.formerly)) }
}

/// A property under the names that one schema gives to its field.
struct NamedProperty<B: Build>: Sendable {
    let property: Property<B>
    let name: String
    let formerly: String?

    /// Returns the stored value that the property reads; nil: there is none.
    func stored<Value>(in fields: [String: Value]) -> Value? { fields[name] ?? formerly.flatMap { fields[$0] } }
}

/// The three builds of a run.
enum Builds {
    /// Gives each build a random schema.
    static func shuffle(_ random: inout SeededNumbers) {
        let renamed = Set(Property<NewBuild>.all.map { $0[0].name }.filter { _ in random.oneIn(2) })
        setShape(of: OldBuild.self, renamed, &random)
        setShape(of: OtherBuild.self, renamed, &random)
        setShape(of: NewBuild.self, renamed, &random)
    }

    private static func setShape<B: Build>(of build: B.Type, _ renamed: Set<String>, _ random: inout SeededNumbers) {
        let shape = Shape<B>(renamed: renamed, &random)
        B.shape.withLock { $0 = shape }
    }
}
