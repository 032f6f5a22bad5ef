/// An index over the values of one property. The lock of the dataset's store guards it.
protocol KeyPathIndex: AnyObject {
    func insert(_ object: LoadedObject)
    func remove(_ object: LoadedObject)
    func removeAll()
}

/// The objects by the value of one property.
final class ValueIndex<M: Model, Value: Hashable>: KeyPathIndex {
    private let keyPath: KeyPath<M, Value>
    private var objects: [Value: [ObjectKey: LoadedObject]] = [:]

    init(_ keyPath: KeyPath<M, Value>) { self.keyPath = keyPath }

    func insert(_ object: LoadedObject) {
        objects[object.value(M.self)[keyPath: keyPath], default: [:]][object.key] = object
    }

    func remove(_ object: LoadedObject) {
        let value = object.value(M.self)[keyPath: keyPath]
        objects[value]?[object.key] = nil
        if objects[value]?.isEmpty == true { objects[value] = nil }
    }

    func removeAll() { objects = [:] }

    /// Returns the objects that have a value, sorted by the bytes of their ids.
    func objects(with value: Value) -> [LoadedObject] {
        objects[value].map { $0.values.sorted { $0.key < $1.key } } ?? []
    }
}
