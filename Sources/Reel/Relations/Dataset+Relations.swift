internal import ReelClient
internal import Synchronization

// References between objects. A reference may dangle, because devices delete and attach objects at the same time.
extension Dataset {
    /// Returns the targets of a set of references, sorted by the bytes of their ids, and the problems of those that the
    /// model cannot read. Targets that were deleted, never existed, or have not arrived yet are left out.
    ///
    /// - Throws: `SchemaError` for a model that the dataset was not opened with. What `SyncStream.read` throws.
    public func resolve<M: Model>(_ references: Set<Ref<M>>) throws -> ModelObjects<M> {
        let schema = try schema(of: M.self)
        var found = ModelObjects<M>()
        try stream.read { snapshot in
            for id in references.map(\.id).sorted() {
                if let object = try snapshot.object(schema.name, id: id.text) { found.append(object, schema) }
            }
        }
        return found
    }

    /// Returns the objects whose reference names an object that does not exist: other devices have attached them while
    /// the target was deleted. The time that it takes follows the number of objects of the model.
    ///
    /// While the first state of the stream arrives, a target may not be here yet. `isComplete` of the result is false
    /// then, so do not delete the objects.
    ///
    /// - Parameter reference: a reference of the schema.
    /// - Throws: `SchemaError` for a model that the dataset was not opened with, and for a property that the schema
    ///   does not name. What `SyncStream.read` throws.
    public func orphans<M: Model, Target: Model>(
        of reference: any WritableKeyPath<M, Ref<Target>?> & Sendable
    ) throws -> Orphans<M> {
        let (schema, field) = (try schema(of: M.self), try ReferenceField(reference, in: self))
        return try stream.read { snapshot in
            var orphans = Orphans<M>(isComplete: snapshot.isComplete)
            var targets: [ObjectName: Bool] = [:]
            for object in try snapshot.objects(schema.name) {
                let related = RelatedObject(object)
                if field.isAbsent(related) { continue }
                if let target = field.target(related) {
                    let exists = try targets[target] ?? (snapshot.object(target) != nil)
                    targets[target] = exists
                    if exists { continue }
                }
                do throws(ModelProblem) {
                    orphans.values.append(try schema.value(of: object))
                } catch {
                    orphans.problems.append(error)
                }
            }
            return orphans
        }
    }

    /// Deletes an object, and all objects that this device knows to refer to it, directly or through others. References
    /// in a cycle are followed once.
    ///
    ///     try await todo.delete(list.id, cascading: \Task.list, \Step.task)
    ///
    /// Up to 100 objects are deleted by one event: all or none. More objects are deleted by several events of at most
    /// 100. An object is then deleted before those that it refers to, and the object itself is deleted by the last
    /// event. If an event cannot be queued, the earlier ones stay, and the object still exists: call the method again.
    /// Each event deletes only objects that still refer to a deleted object, or to one that is to be deleted, at the
    /// moment when the event is queued. An object that was moved elsewhere in the meantime stays.
    ///
    /// Another device may attach an object before it hears of the delete: `orphans` finds it. The method can also be
    /// called for an object that was deleted, and then deletes what still refers to it. An object that its model cannot
    /// read stays, and is one of the `problems` of the result. Objects that refer only to it stay too.
    ///
    /// Each search reads all objects of the models, and the client waits for it. There is one search for one event, and
    /// there are usually two for several events.
    ///
    /// - Parameters:
    ///   - id: the id of the object.
    ///   - first: a reference through which objects are deleted.
    ///   - others: further references, of the same model or of others.
    /// - Returns: A handle for each event, and the objects that cannot be read.
    /// - Throws: `no_object` if this device does not have the object. `SchemaError` for a model that the dataset was
    ///   not opened with, and for a property that the schema does not name. What `SyncStream.publish` throws.
    @discardableResult
    public func delete<M: Model, A: Model, B: Model, each Source: Model, each Target: Model>(
        _ id: ModelID<M>,
        cascading first: any WritableKeyPath<A, Ref<B>?> & Sendable,
        _ others: repeat any WritableKeyPath<each Source, Ref<each Target>?> & Sendable
    ) async throws -> RelationWrites {
        var references = [try ReferenceField(first, in: self)]
        repeat references.append(try ReferenceField(each others, in: self))
        return try await delete(ObjectName(try schema(of: M.self).name, id: id.text), references)
    }

    private func delete(_ root: ObjectName, _ references: [ReferenceField]) async throws -> RelationWrites {
        let cascade = Mutex(Cascade(root, references))
        var handles: [PublishHandle] = []
        while !cascade.withLock(\.isFinished) {
            let handle = try await stream.publish { present in try cascade.withLock { try $0.next(present) } }
            if !handle.event.changes.isEmpty { handles.append(handle) }
        }
        return RelationWrites(handles: handles, problems: cascade.withLock(\.problems))
    }

    /// Removes references to deleted objects from the sets of all objects of a model. `resolve` leaves such references
    /// out in any case, so this only makes the sets smaller.
    ///
    /// Each event changes at most 100 objects. A reference stays if its target has not arrived yet, and if the stream
    /// has forgotten that the target was deleted. An object that the model cannot read stays as it is, and is one of
    /// the `problems` of the result.
    ///
    /// - Parameter references: a set of the schema.
    /// - Returns: A handle for each event, and the objects that cannot be read.
    /// - Throws: `SchemaError` for a model that the dataset was not opened with, and for a property that the schema
    ///   does not name. What `SyncStream.publish` throws.
    @discardableResult
    public func removeDeletedTargets<M: Model, Target: Model>(
        from references: any WritableKeyPath<M, Set<Ref<Target>>> & Sendable
    ) async throws -> RelationWrites {
        let cleanup = Mutex(try SetCleanup(references, of: self))
        var handles: [PublishHandle] = []
        while !cleanup.withLock({ $0.isFinished }) {
            let handle = try await stream.publish { present in try cleanup.withLock { try $0.next(present) } }
            if !handle.event.changes.isEmpty { handles.append(handle) }
        }
        return RelationWrites(handles: handles, problems: cleanup.withLock { $0.problems })
    }
}
