/// A decoded object. Queries share it, and a changed object gets another one.
final class LoadedObject<M: Model>: Sendable {
    let id: ID<M>
    let value: M

    init(_ value: M) { (self.id, self.value) = (value.id, value) }
}

/// The change of one object: both are nil for an object that the model can read neither before nor after it.
struct ObjectChange<M: Model> {
    let old: LoadedObject<M>?
    let new: LoadedObject<M>?
}
