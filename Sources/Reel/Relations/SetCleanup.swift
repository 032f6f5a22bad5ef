internal import ReelClient
internal import ReelCore

/// The progress of a removal of deleted targets from the sets of a model, which makes its events one after the other.
struct SetCleanup<M: Model, Target: Model>: Sendable {
    private let dataset: Dataset
    private let keyPath: any WritableKeyPath<M, Set<Ref<Target>>> & Sendable
    /// The objects that are still to be changed; nil before the first event.
    private var open: ArraySlice<M.ID>?

    /// The objects that the model cannot read.
    private(set) var problems: [ModelProblem] = []

    init(_ keyPath: any WritableKeyPath<M, Set<Ref<Target>>> & Sendable, of dataset: Dataset) throws(SchemaError) {
        let schema = try dataset.schema(of: M.self)
        _ = try dataset.schema(of: Target.self)
        guard schema.field(at: keyPath) != nil else {
            throw SchemaError(faults: [.unknownProperty(model: schema.name)])
        }
        (self.dataset, self.keyPath) = (dataset, keyPath)
    }

    /// True once all objects were changed.
    var isFinished: Bool { open?.isEmpty == true }

    /// Returns the next event, made from the present objects; nil if it would change nothing.
    mutating func next(_ present: PresentObjects) throws -> SyncEvent? {
        var open = try open ?? search(present)[...]
        var batch = ModelBatch(dataset, present)
        for id in open.prefix(Limits.parts) {
            guard let object = try present.object(M.schema.name, id: id.text) else { continue }
            let deleted = try deletedTargets(of: object, present)
            if !deleted.isEmpty { try batch.update(id) { $0[keyPath: keyPath].subtract(deleted) } }
        }
        open = open.dropFirst(Limits.parts)
        self.open = open
        return batch.event
    }

    private mutating func search(_ present: PresentObjects) throws -> [M.ID] {
        var found: [M.ID] = []
        for object in try present.objects(M.schema.name) {
            if try !deletedTargets(of: object, present).isEmpty { found.append(ModelID(object.name.id)) }
        }
        return found
    }

    /// Returns the targets in the set of an object that were deleted. Empty for an object that the model cannot read.
    private mutating func deletedTargets(
        of object: SyncObject,
        _ present: PresentObjects
    ) throws -> Set<Ref<Target>> {
        let value: M
        do throws(ModelProblem) {
            value = try M.schema.value(of: object)
        } catch {
            problems.append(error)
            return []
        }
        return try value[keyPath: keyPath].filter { try present.isDeleted(Target.schema.name, id: $0.id.text) }
    }
}
