internal import ReelClient

/// The objects of a model, and those that it cannot read.
public struct ModelObjects<M: Model>: Sendable {
    /// The values, sorted by the bytes of their ids.
    public var values: [M] = []
    /// The objects that the model cannot read, in the same order. They stay in the stream as they are.
    public var problems: [ModelProblem] = []
}

extension ModelObjects {
    /// Reads objects of the model.
    init(_ objects: [SyncObject], _ schema: Schema<M>) {
        for object in objects { append(object, schema) }
    }

    /// Adds an object, or the problem of reading it.
    mutating func append(_ object: SyncObject, _ schema: Schema<M>) {
        do throws(ModelProblem) {
            values.append(try schema.value(of: object))
        } catch {
            problems.append(error)
        }
    }
}

extension ModelObjects: Equatable where M: Equatable {}
