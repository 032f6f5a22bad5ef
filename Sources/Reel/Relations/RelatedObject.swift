internal import ReelClient

/// An object that may refer to others, as it is stored or as a batch leaves it.
struct RelatedObject {
    let name: ObjectName
    /// Returns the value of a field; nil if the field is absent.
    let field: (String) -> JSONValue?
}

extension RelatedObject {
    init(_ object: SyncObject) { self.init(name: object.name) { object[$0] } }
}

/// The objects among which a cascading delete searches.
protocol RelatedObjects {
    /// Returns an object; nil if it does not exist on this device.
    func related(_ name: ObjectName) throws -> RelatedObject?
    /// Returns all objects of a model, sorted by the bytes of their ids.
    func related(ofModel model: String) throws -> [RelatedObject]
    /// Returns true if the object was deleted.
    func isDeleted(_ name: ObjectName) throws -> Bool
}

extension PresentObjects: RelatedObjects {
    func related(_ name: ObjectName) throws -> RelatedObject? {
        try object(name.model, id: name.id).map { RelatedObject($0) }
    }

    func related(ofModel model: String) throws -> [RelatedObject] { try objects(model).map { RelatedObject($0) } }

    func isDeleted(_ name: ObjectName) throws -> Bool { try isDeleted(name.model, id: name.id) }
}
