/// Values that differ in their canonical bytes, in the order in which they were added.
package struct ElementSet {
    private var places: [[UInt8]: Int] = [:]
    private var elements: [(key: [UInt8], value: JSONValue)?] = []

    package init(_ values: [JSONValue]) { add(values) }

    var values: [JSONValue] { elements.compactMap { $0?.value } }

    /// The values in the order in which the fold keeps a set.
    package var sorted: [JSONValue] {
        elements.compactMap { $0 }.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map(\.value)
    }

    mutating func add(_ values: [JSONValue]) {
        for value in values {
            let key = Self.key(value)
            guard places[key] == nil else { continue }
            places[key] = elements.count
            elements.append((key, value))
        }
    }

    mutating func remove(_ values: [JSONValue]) {
        for value in values {
            if let place = places.removeValue(forKey: Self.key(value)) { elements[place] = nil }
        }
    }

    private static func key(_ value: JSONValue) -> [UInt8] {
        var bytes: [UInt8] = []
        value.write(to: &bytes)
        return bytes
    }
}
