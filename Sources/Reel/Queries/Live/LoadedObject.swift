/// A decoded object. Queries share it, and a changed object gets another one.
///
/// Indexes and comparisons see only this class, whose subclass knows the model. Generic code would look up its types at
/// run time for each object.
class LoadedObject: @unchecked Sendable {
    let key: ObjectKey
    /// True if an own event that has changed the object is not confirmed yet.
    let isPending: Bool

    fileprivate init(_ key: ObjectKey, isPending: Bool) { (self.key, self.isPending) = (key, isPending) }

    /// The value, which must be of this model. The objects of a query are all of its model.
    func value<M: Model>(_ model: M.Type) -> M { unsafeDowncast(self, to: TypedObject<M>.self).value }
}

/// A decoded object of one model.
final class TypedObject<M: Model>: LoadedObject, @unchecked Sendable {
    fileprivate let value: M

    init(_ value: M, isPending: Bool) {
        self.value = value
        super.init(ObjectKey(value.id.text), isPending: isPending)
    }
}

/// The id of an object. Two are equal if their UTF-8 bytes are equal.
struct ObjectKey: Hashable, Comparable, Sendable {
    let text: String

    init(_ text: String) { self.text = text }

    static func == (a: ObjectKey, b: ObjectKey) -> Bool { a.text.utf8.elementsEqual(b.text.utf8) }

    static func < (a: ObjectKey, b: ObjectKey) -> Bool { a.text.utf8.lexicographicallyPrecedes(b.text.utf8) }

    func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

/// The change of one object: nil for an object that does not exist, or that the model cannot read.
struct LoadedChange: Sendable {
    let old: LoadedObject?
    let new: LoadedObject?
}
