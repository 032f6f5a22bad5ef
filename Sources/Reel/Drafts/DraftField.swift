internal import ReelClient

/// The field that a draft edits.
struct DraftField: Sendable {
    var object: ObjectName
    var name: String
    var formerly: String?

    /// Returns the content of the field.
    func content<Content: DraftContent>(of object: SyncObject) throws(ModelProblem) -> Content {
        do throws(FieldValueError) {
            return try Content(stored: object[name] ?? formerly.flatMap { object[$0] })
        } catch {
            throw ModelProblem(error, self.object, field: name)
        }
    }

    /// Returns the event that performs own edits on the field of an object.
    ///
    /// - Parameters:
    ///   - edits: the edits.
    ///   - object: the object as the client shows it.
    ///   - old: the content of the field.
    ///   - new: the content after the edits.
    func event<Content: DraftContent>(
        _ edits: Patch<Content>,
        of object: SyncObject,
        from old: Content,
        to new: Content
    ) -> SyncEvent {
        if object[name] == nil, let formerly, object[formerly] != nil {
            // A splice counts on the field of the same name, so the former content is taken along.
            return .update(self.object.model, id: self.object.id, [name: .string(new.wireText)])
        }
        return .update(self.object.model, id: self.object.id, operations: [name: .splice(old.splices(edits))])
    }
}
