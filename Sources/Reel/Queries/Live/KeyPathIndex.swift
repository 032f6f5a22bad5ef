/// An index over the values of one property. The lock of the dataset's store guards it.
protocol KeyPathIndex<M>: AnyObject {
    associatedtype M: Model

    func insert(_ object: LoadedObject<M>)
    func remove(_ object: LoadedObject<M>)
    func removeAll()
}

/// The objects by the value of one property.
final class ValueIndex<M: Model, Value: Hashable>: KeyPathIndex {
    private let keyPath: KeyPath<M, Value>
    private var objects: [Value: [ID<M>: LoadedObject<M>]] = [:]

    init(_ keyPath: KeyPath<M, Value>) { self.keyPath = keyPath }

    func insert(_ object: LoadedObject<M>) { objects[object.value[keyPath: keyPath], default: [:]][object.id] = object }

    func remove(_ object: LoadedObject<M>) {
        let value = object.value[keyPath: keyPath]
        objects[value]?[object.id] = nil
        if objects[value]?.isEmpty == true { objects[value] = nil }
    }

    func removeAll() { objects = [:] }

    /// Returns the objects that have a value, sorted by the bytes of their ids.
    func objects(with value: Value) -> [LoadedObject<M>] {
        objects[value].map { $0.values.sorted { $0.id < $1.id } } ?? []
    }
}
